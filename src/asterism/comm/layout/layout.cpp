#include "asterism/comm/layout/layout.hpp"

#include <algorithm>
#include <utility>

#include "asterism/base/error.hpp"

namespace asterism::comm {

Layout::Layout(Communicator comm, std::shared_ptr<Table const> table) : comm_(std::move(comm)), table_(std::move(table)) {
  begin_ = first_of(comm_.rank());
  end_ = first_of(comm_.rank() + 1);
  global_ = first_of(comm_.size());
}

Layout::Layout(Communicator const& comm, std::int64_t local) {
  ASTERISM_REQUIRE(local >= 0, shape, "a layout cannot own {} indices.", local);
  auto const counts = comm.all_gather(local);
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  for (std::size_t r = 0; r < counts.size(); ++r) offsets[r + 1] = offsets[r] + counts[r];
  *this = from_offsets(comm, std::move(offsets));
}

Layout Layout::even(Communicator const& comm, std::int64_t global, std::int64_t block) {
  ASTERISM_REQUIRE(block >= 1 && global % block == 0, shape, "block size {} does not divide {} rows.", block, global);
  auto const first_of = [](std::vector<std::int64_t> const& numbers, std::int64_t rank, std::int64_t ranks) {
    auto const n = numbers[0], bs = numbers[1];
    return (n / ranks * rank + std::min(rank, n % ranks)) * bs;
  };
  return from_rule(comm, first_of, {global / block, block});
}

Layout Layout::from_offsets(Communicator const& comm, std::vector<std::int64_t> offsets) {
  ASTERISM_ASSERT(offsets.size() == std::size_t(comm.size()) + 1);
  auto table = std::make_shared<Table>();
  table->offsets.made_by([&] { return std::move(offsets); });
  return {comm, std::move(table)};
}

Layout Layout::from_rule(Communicator const& comm, Rule rule, std::vector<std::int64_t> numbers) {
  auto table = std::make_shared<Table>();
  table->rule = rule;
  table->numbers = std::move(numbers);
  return {comm, std::move(table)};
}

std::vector<std::int64_t> const& Layout::offsets() const {
  return table_->offsets.made_by([this] {
    std::vector<std::int64_t> all(std::size_t(comm_.size()) + 1);
    for (int r = 0; r <= comm_.size(); ++r) all[std::size_t(r)] = first_of(r);
    return all;
  });
}

int Layout::owner(std::int64_t global) const {
  ASTERISM_REQUIRE(global >= 0 && global < global_size(), value, "index {} is outside [0, {}).", global, global_size());
  if (owns(global)) return comm_.rank();
  int low = 0, high = comm_.size();  // the last rank that begins at or before it: first_of(low) <= global < first_of(high)
  while (high - low > 1) {
    int const middle = low + (high - low) / 2;
    (first_of(middle) <= global ? low : high) = middle;
  }
  return low;
}

bool Layout::fits(Layout const& other) const {
  if (comm_ != other.comm_) return false;
  if (table_ == other.table_) return true;
  if (table_->rule && table_->rule == other.table_->rule && table_->numbers == other.table_->numbers) return true;
  return global_ == other.global_ && begin_ == other.begin_ && end_ == other.end_ && offsets() == other.offsets();
}

}  // namespace asterism::comm
