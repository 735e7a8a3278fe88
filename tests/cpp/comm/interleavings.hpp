// Every interleaving of a few programs that share words of memory, one access at a time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace interleavings {

/// What a rank is stopped by after one access, and where it would wait.
struct Stepped {};
struct Blocked {};

/// The shared words, and for each rank how far it is. A rank is a deterministic program, so what it has read determines it:
/// its next step is found by running it again on what it read before.
struct State {
  std::vector<std::uint64_t> words;
  struct Rank {
    std::size_t accesses = 0;
    std::vector<std::uint64_t> reads;
    bool done = false;
  };
  std::vector<Rank> ranks;
  std::string wrong;
  std::string key() const {
    std::string k;
    auto const add = [&](std::uint64_t v) { k.append(reinterpret_cast<char const*>(&v), sizeof v); };
    for (auto const w : words) add(w);
    for (auto const& r : ranks) {
      add(r.accesses);
      add(r.done);
      for (auto const v : r.reads) add(v);
    }
    return k;
  }
};

/// One rank's view: replays what it did, then does one access more and stops.
struct View {
  State& state;
  int rank;
  std::size_t access = 0, read = 0;
  std::size_t mark_access = 0, mark_read = 0;

  View(State& s, int r) : state(s), rank(r) {}
  State::Rank& me() { return state.ranks[std::size_t(rank)]; }
  std::uint64_t load_shared(std::size_t word) {
    if (access++ < me().accesses) return me().reads[read++];
    me().reads.push_back(state.words[word]);
    ++me().accesses;
    throw Stepped{};
  }
  void store_shared(std::size_t word, std::uint64_t value) {
    if (access++ < me().accesses) return;
    state.words[word] = value;
    ++me().accesses;
    throw Stepped{};
  }
  /// One access: what was there before.
  std::uint64_t add_shared(std::size_t word, std::uint64_t by) {
    if (access++ < me().accesses) return me().reads[read++];
    me().reads.push_back(state.words[word]);
    state.words[word] += by;
    ++me().accesses;
    throw Stepped{};
  }
  /// From here on the rank only looks whether it can go on.
  void mark() { mark_access = access, mark_read = read; }
  /// It cannot: it will look again.
  void block() {
    me().accesses = mark_access;
    me().reads.resize(mark_read);
    throw Blocked{};
  }
};

using Program = std::function<void(State&, int rank)>;

struct Result {
  std::size_t states = 0;
  std::string wrong;
};

/// All states that the programs can reach, and whether from each of them the end can be reached.
inline Result explore(std::vector<Program> const& programs, std::size_t words = 32) {
  State start;
  start.words.assign(words, 0);
  start.ranks.resize(programs.size());
  std::unordered_map<std::string, int> seen{{start.key(), 0}};
  std::vector<State> all{start};
  std::vector<std::vector<int>> before(1);
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (int r = 0; r < int(programs.size()); ++r) {
      if (all[s].ranks[std::size_t(r)].done) continue;
      State next = all[s];
      try {
        programs[std::size_t(r)](next, r);
        next.ranks[std::size_t(r)].done = true;
      } catch (Stepped) {
      } catch (Blocked) {
      } catch (std::exception const& e) {
        next.wrong = e.what();
      }
      if (!next.wrong.empty()) return {all.size(), next.wrong};
      auto const [at, fresh] = seen.try_emplace(next.key(), int(all.size()));
      if (fresh) {
        all.push_back(std::move(next));
        before.emplace_back();
      }
      before[std::size_t(at->second)].push_back(int(s));
    }
  }
  std::vector<int> reached;
  std::vector<char> can_end(all.size(), 0);
  for (std::size_t s = 0; s < all.size(); ++s)
    if (std::all_of(all[s].ranks.begin(), all[s].ranks.end(), [](auto const& r) { return r.done; })) {
      can_end[s] = 1;
      reached.push_back(int(s));
    }
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (auto const b : before[std::size_t(reached[i])])
      if (!can_end[std::size_t(b)]) can_end[std::size_t(b)] = 1, reached.push_back(b);
  if (std::find(can_end.begin(), can_end.end(), 0) != can_end.end()) return {all.size(), "some ranks wait for ever"};
  return {all.size(), ""};
}

}  // namespace interleavings
