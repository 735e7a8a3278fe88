// All entries of a distributed matrix in one place.
#pragma once
#include <cstring>
#include <vector>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::precond {

/// put(i, j, value) for every entry of my rows, by ascending rows.
template <class T, class F>
void each_own_entry(la::Matrix const& A, F const& put) {
  auto const rows = A.to_rows();
  for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r)
    for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p)
      put(A.range().begin() + std::int64_t(r), rows.columns[std::size_t(p)], rows.values.as<T>()[p]);
}

/// put(i, j, value) for every entry of A, by ascending rows: on all ranks, or on rank 0 alone. Collective.
template <class T, class F>
void each_entry(la::Matrix const& A, bool on_all, F const& put) {
  struct Entry {
    std::int64_t i, j;
    T v;
  };
  if (A.comm().size() == 1) return each_own_entry<T>(A, put);
  std::vector<Entry> mine;
  mine.reserve(std::size_t(A.local_nnz()));
  each_own_entry<T>(A, [&](std::int64_t i, std::int64_t j, T v) { mine.push_back({i, j, v}); });
  auto const put_all = [&](std::vector<std::byte> const& bytes) {
    for (std::size_t e = 0; e < bytes.size() / sizeof(Entry); ++e) {
      Entry x;
      std::memcpy(static_cast<void*>(&x), bytes.data() + e * sizeof(Entry), sizeof x);
      put(x.i, x.j, x.v);
    }
  };
  if (on_all) return put_all(A.comm().all_gather_bytes(std::as_bytes(std::span<Entry const>(mine))));
  std::vector<comm::Parcel> parcels;
  if (!mine.empty()) {
    parcels.push_back({0, {}});
    comm::append<Entry>(parcels[0].data, mine);
  }
  for (auto const& p : comm::exchange(A.comm(), std::move(parcels))) put_all(p.data);
}

}  // namespace asterism::precond
