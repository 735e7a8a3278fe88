// What one rank has made, on all ranks: an analysis, or L and U.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/serial_factors.hpp"
#include "asterism/direct/symbolic/analysis.hpp"

namespace asterism::direct {

/// From the first rank. Collective.
template <class U>
void share(comm::Communicator const& comm, std::vector<U>& v) {
  auto count = std::int64_t(v.size());
  comm.bcast(&count, sizeof count, 0);
  v.resize(std::size_t(count));
  comm.bcast(v.data(), count * std::int64_t(sizeof(U)), 0);
}
template <class U>
void share_value(comm::Communicator const& comm, U& v) {
  comm.bcast(&v, sizeof v, 0);
}

inline void share_scales(comm::Communicator const& comm, Analysis& a) {
  share(comm, a.row_scale);
  share(comm, a.column_scale);
}

inline void share(comm::Communicator const& comm, Analysis& a) {
  for (auto* const v :
       {&a.rows, &a.columns, &a.symbolic.order, &a.symbolic.nodes.starts, &a.symbolic.nodes.parent, &a.symbolic.nodes.row_indices})
    share(comm, *v);
  share(comm, a.symbolic.nodes.row_offsets);
  share(comm, a.symbolic.work);
  share(comm, a.symbolic.joined);
  share_scales(comm, a);
  share_value(comm, a.n);
  share_value(comm, a.dtype);
  share_value(comm, a.matched);
  share_value(comm, a.predicted);
  share_value(comm, a.symbolic.entries);
  share_value(comm, a.symbolic.flops);
  share_value(comm, a.symbolic.peak);
  share_value(comm, a.options.kind);
  share_value(comm, a.options.pivot_threshold);
  share_value(comm, a.options.memory_limit);
  share_value(comm, a.options.flop_limit);
  a.ordering = comm.bcast(a.ordering, 0);
}

inline void share(comm::Communicator const& comm, la::Csr& a) {
  share_value(comm, a.dtype);
  std::int64_t sizes[] = {a.rows, a.cols, a.nnz()};
  comm.bcast(sizes, sizeof sizes, 0);
  comm::agree(comm, [&] {
    if (comm.rank() != 0) a = la::Csr(a.dtype, std::int32_t(sizes[0]), std::int32_t(sizes[1]), sizes[2]);
  });
  for (auto const& part : {a.offsets, a.columns, a.values}) comm.bcast(part.raw(), std::int64_t(part.bytes()), 0);
}

inline void share(comm::Communicator const& comm, ExplicitFactors& f) {
  share(comm, f.L), share(comm, f.U);
  share(comm, f.rows), share(comm, f.columns);
  share(comm, f.row_scale), share(comm, f.column_scale);
}

}  // namespace asterism::direct
