// An analysis that one rank has made, on all ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/analysis.hpp"

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
  a.ordering = comm.bcast(a.ordering, 0);
}

}  // namespace asterism::direct
