#include "asterism/la/io/repeated_entries.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/comm/communicator/exchange.hpp"

namespace asterism::la::io {
namespace {

using i64 = std::int64_t;

struct Place {
  i64 i, j;    // of one triangle: i <= j
  i64 mirror;  // it stood at (j, i)
};

/// How many, and the first: the least (i, j), as it stood in the file.
struct Found {
  i64 count = 0, row = 0, column = 0;
  Place first{std::numeric_limits<i64>::max(), 0, 0};
  void add(Place const& p) {
    if (count++ == 0) first = p;
  }
  void gather(comm::Communicator const& comm) {
    count = comm.sum(count);
    // rows have one owner; a rank without any has the largest number
    bool const mine = comm.min(first.i) == first.i && first.i < std::numeric_limits<i64>::max();
    i64 place[2] = {mine ? (first.mirror ? first.j : first.i) : -1, mine ? (first.mirror ? first.i : first.j) : -1};
    row = comm.max(place[0]) + 1;
    column = comm.max(place[1]) + 1;
  }
};

}  // namespace

void check_repeated_entries(std::string const& path, Matrix const& A, i64 put, bool one_triangle,
                            std::function<void(std::function<void(i64, i64)> const&)> const& each_entry) {
  auto const& comm = A.comm();
  if (comm.sum(put) == A.nnz()) return;
  auto const& rows = A.range();
  std::vector<std::vector<Place>> to(static_cast<std::size_t>(comm.size()));
  each_entry([&](i64 i, i64 j) {
    bool const mirror = one_triangle && i > j;
    to[std::size_t(rows.owner(mirror ? j : i))].push_back(mirror ? Place{j, i, 1} : Place{i, j, 0});
  });
  std::vector<comm::Parcel> parcels;
  for (std::size_t r = 0; r < to.size(); ++r) {
    if (to[r].empty()) continue;
    parcels.push_back({int(r), {}});
    comm::append<Place>(parcels.back().data, to[r]);
  }
  std::vector<Place> all;
  for (auto const& p : comm::exchange(comm, std::move(parcels))) {
    auto const part = comm::items_of<Place>(p.data);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end(),
            [](Place const& a, Place const& b) { return std::tie(a.i, a.j, a.mirror) < std::tie(b.i, b.j, b.mirror); });
  Found both, repeated;
  for (std::size_t e = 1; e < all.size(); ++e) {
    if (all[e].i != all[e - 1].i || all[e].j != all[e - 1].j) continue;
    (all[e].mirror != all[e - 1].mirror ? both : repeated).add(all[e]);
  }
  both.gather(comm);
  repeated.gather(comm);
  ASTERISM_REQUIRE(
      both.count == 0, format,
      "'{}' is a file of one triangle of a symmetric matrix, but holds both ({}, {}) and ({}, {}), the first of {} such pair(s): "
      "each entry would count twice. Leave one triangle out, or call the file general if it holds the whole matrix.",
      path, both.row, both.column, both.column, both.row, both.count);
  if (comm.rank() == 0 && repeated.count > 0)
    log::warning("'{}' holds entries that stand there more than once, {} too many; the first is ({}, {}). They are summed.", path,
                 repeated.count, repeated.row, repeated.column);
}

}  // namespace asterism::la::io
