#include "asterism/comm/layout/layout.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"

namespace asterism::comm {

Layout::Layout(Communicator const& comm, std::int64_t local) : comm_(comm) {
  ASTERISM_REQUIRE(local >= 0, shape, "a layout cannot own {} indices.", local);
  auto const counts = comm.all_gather(local);
  auto offsets = std::make_shared<std::vector<std::int64_t>>(counts.size() + 1, 0);
  for (std::size_t r = 0; r < counts.size(); ++r) (*offsets)[r + 1] = (*offsets)[r] + counts[r];
  offsets_ = std::move(offsets);
}

Layout Layout::even(Communicator const& comm, std::int64_t global, std::int64_t block) {
  ASTERISM_REQUIRE(block >= 1 && global % block == 0, shape, "block size {} does not divide {} rows.", block, global);
  auto const n = global / block;
  std::vector<std::int64_t> offsets(std::size_t(comm.size()) + 1);
  for (std::int64_t r = 0; r <= comm.size(); ++r) offsets[std::size_t(r)] = (n / comm.size() * r + std::min(r, n % comm.size())) * block;
  return from_offsets(comm, std::move(offsets));
}

Layout Layout::from_offsets(Communicator const& comm, std::vector<std::int64_t> offsets) {
  ASTERISM_ASSERT(offsets.size() == std::size_t(comm.size()) + 1);
  Layout l;
  l.comm_ = comm;
  l.offsets_ = std::make_shared<std::vector<std::int64_t> const>(std::move(offsets));
  return l;
}

int Layout::owner(std::int64_t global) const {
  ASTERISM_REQUIRE(global >= 0 && global < global_size(), value, "index {} is outside [0, {}).", global, global_size());
  return int(std::upper_bound(offsets_->begin(), offsets_->end(), global) - offsets_->begin()) - 1;
}

bool Layout::fits(Layout const& other) const {
  return comm_ == other.comm_ && (offsets_ == other.offsets_ || *offsets_ == *other.offsets_);
}

}  // namespace asterism::comm
