#include "asterism/la/assembly/entries.hpp"

#include <algorithm>

#include "asterism/comm/communicator/exchange.hpp"

namespace asterism::la {

template <class J>
EntryStack<J> single_entries(Layout const& rows, char const* what, std::span<J const> i, std::span<J const> j) {
  comm::agree(rows.comm(), [&] {
    checked_local_index(rows.local_size(), "rows of one rank");
    ASTERISM_REQUIRE(i.size() == j.size(), shape, "{}: {} row indices but {} column indices.", what, i.size(), j.size());
  });
  return {i.data(), j.data(), std::int64_t(i.size())};
}

template <class J>
std::optional<BadEntry> first_bad_entry(EntryStack<J> const& s, Layout const& rows, Layout const* columns, Remote remote) {
  auto const n = rows.global_size(), m = columns ? columns->global_size() : 1;
  auto const bad_row = [&](J i) { return i >= n || (remote == Remote::refuse && i >= 0 && !rows.owns(i)); };
  auto const bad_column = [&](J j) { return j >= m; };
  std::span<J const> const all_rows(s.rows, std::size_t(s.count * s.m)), all_columns(s.columns, columns ? std::size_t(s.count * s.n) : 0);
  if (std::none_of(all_rows.begin(), all_rows.end(), bad_row) && std::none_of(all_columns.begin(), all_columns.end(), bad_column))
    return {};
  for (std::int64_t v = 0; v < s.values(); ++v) {
    std::int64_t const i = s.rows[v / s.n], j = columns ? s.columns[v / s.n / s.m * s.n + v % s.n] : 0;
    if (i >= n || j >= m)
      return BadEntry{v, i, j, columns ? format("outside the {} x {} matrix", n, m) : format("outside the vector of {}", n)};
    if (i >= 0 && j >= 0 && bad_row(J(i)))
      return BadEntry{v, i, j,
                      format("in a row of rank {}; rank {} owns [{}, {}) and entries for others are refused", rows.owner(i),
                             rows.comm().rank(), rows.begin(), rows.end())};
  }
  return {};
}

namespace {
/// One that is in a row of another rank.
struct Announced {
  std::int64_t row, column, number, turn;
};
}  // namespace

template <class J>
RowEntries<J> bring_entries(Layout const& rows, Layout const& entries, std::span<EntryStack<J> const> mine) {
  auto const& comm = rows.comm();
  std::vector<comm::Parcel> parcels;
  if (comm.size() > 1) {
    std::vector<std::vector<Announced>> to(static_cast<std::size_t>(comm.size()));
    for (auto const& s : mine)
      for (std::int64_t slot = 0; slot < s.count * s.m; ++slot) {
        std::int64_t const i = s.rows[slot];
        if (i < 0 || rows.owns(i)) continue;
        for (std::int64_t b = 0; b < s.n; ++b)
          if (std::int64_t const j = s.columns ? s.columns[slot / s.m * s.n + b] : 0; j >= 0)
            to[std::size_t(rows.owner(i))].push_back({i, j, entries.begin() + s.first + slot * s.n + b, s.turn});
      }
    for (int r = 0; r < comm.size(); ++r)
      if (auto& announced = to[std::size_t(r)]; !announced.empty()) {
        comm::Parcel parcel{r, {}};
        comm::append<Announced>(parcel.data, announced);
        announced = {};
        parcels.push_back(std::move(parcel));
      }
    parcels = comm::exchange(comm, std::move(parcels));
  }
  struct FromRank {
    int rank;
    EntryStack<J> stack;
    std::size_t begin = 0;  // of those received
  };
  RowEntries<J> out;
  std::vector<FromRank> all;
  for (auto const& s : mine) all.push_back({comm.rank(), s});
  for (auto const& parcel : parcels) {
    bool fresh = true;
    for (auto const& a : comm::items_of<Announced>(parcel.data)) {
      if (fresh || a.turn != all.back().stack.turn) {
        all.push_back({parcel.rank, {}, out.rows.size()});
        all.back().stack.turn = int(a.turn);
        all.back().stack.first = entries.local_size() + std::int64_t(out.rows.size());
      }
      fresh = false;
      ++all.back().stack.count;
      out.rows.push_back(J(a.row));
      out.columns.push_back(J(a.column));
      out.numbers.push_back(a.number);
    }
  }
  for (auto& from : all)
    if (from.rank != comm.rank()) {
      from.stack.rows = out.rows.data() + from.begin;
      from.stack.columns = out.columns.data() + from.begin;
    }
  std::stable_sort(all.begin(), all.end(), [](FromRank const& a, FromRank const& b) {
    return a.stack.turn != b.stack.turn ? a.stack.turn < b.stack.turn : a.rank < b.rank;
  });
  for (auto const& from : all) out.stacks.push_back(from.stack);
  return out;
}

Remote remote_from_name(std::string_view name) {
  ASTERISM_REQUIRE(name == "send" || name == "error", option, "remote is '{}'; 'send' or 'error' is needed.", name);
  return name == "send" ? Remote::send : Remote::refuse;
}

#define INSTANTIATE(J)                                                                                          \
  template EntryStack<J> single_entries(Layout const&, char const*, std::span<J const>, std::span<J const>);    \
  template std::optional<BadEntry> first_bad_entry(EntryStack<J> const&, Layout const&, Layout const*, Remote); \
  template RowEntries<J> bring_entries(Layout const&, Layout const&, std::span<EntryStack<J> const>);
INSTANTIATE(std::int32_t)
INSTANTIATE(std::int64_t)
#undef INSTANTIATE

}  // namespace asterism::la
