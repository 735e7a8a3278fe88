#include "asterism/comm/communicator/same_on_all.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace asterism::comm {
namespace {

/// FNV-1a.
std::int64_t hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037ull;
  for (unsigned char const c : text) h = (h ^ c) * 1099511628211ull;
  return std::int64_t(h);
}

constexpr char end_of_name = '\1', end_of_value = '\2';

std::map<std::string, std::string, std::less<>> parsed(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  while (!text.empty()) {
    auto const n = text.find(end_of_name), v = text.find(end_of_value);
    out.emplace(text.substr(0, n), text.substr(n + 1, v - n - 1));
    text.remove_prefix(v + 1);
  }
  return out;
}

std::string described(std::vector<std::map<std::string, std::string, std::less<>>> const& ranks) {
  std::set<std::string> names;
  for (auto const& r : ranks)
    for (auto const& [name, value] : r) names.insert(name);
  std::string out;
  for (auto const& name : names) {
    std::map<std::string, std::vector<std::size_t>> by_value;  // the ranks that give it
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      auto const at = ranks[r].find(name);
      by_value[at == ranks[r].end() ? "not given" : at->second].push_back(r);
    }
    if (by_value.size() == 1) continue;
    if (!out.empty()) out += ". ";
    out += name + " is ";
    bool first = true;
    for (auto const& [value, on] : by_value) {
      out += format("{}{} on rank{} {}", first ? "" : "; ", value, on.size() > 1 ? "s" : "", on[0]);
      for (std::size_t i = 1; i < on.size() && i < 10; ++i) out += format(", {}", on[i]);
      if (on.size() > 10) out += ", ...";
      first = false;
    }
  }
  return out;
}

}  // namespace

void require_same(Communicator const& comm, char const* call, std::span<Fact const> facts) {
  if (comm.size() == 1) return;
  std::string mine;
  for (auto const& f : facts) mine += f.name + end_of_name + f.value + end_of_value;
  auto const h = hash(mine);
  auto const hashes = comm.all_gather(h);
  if (std::all_of(hashes.begin(), hashes.end(), [h](auto other) { return other == h; })) return;
  std::vector<std::int64_t> lengths;
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span(mine)), &lengths);
  std::string_view rest(reinterpret_cast<char const*>(all.data()), all.size());
  std::vector<std::map<std::string, std::string, std::less<>>> ranks;
  for (auto const n : lengths) {
    ranks.push_back(parsed(rest.substr(0, std::size_t(n))));
    rest.remove_prefix(std::size_t(n));
  }
  throw Error(ErrorKind::comm, format("{}: the ranks do not say the same: {}. Give the same on all ranks.", call, described(ranks)), true);
}

}  // namespace asterism::comm
