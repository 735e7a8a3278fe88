#include "asterism/la/assembly/vector_assembly.hpp"

#include <array>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/la/assembly/entry_sums.hpp"

namespace asterism::la {

struct VectorAssembly::Plan {
  Layout rows;
  EntrySums sums;
};

VectorAssembly::VectorAssembly(Layout const& rows, std::span<std::int64_t const> i, bool replace, Remote remote) {
  static int const event = profile::event("VecPreallocateCOO");
  profile::Scope const scope(event);
  comm::Fact const facts[] = {{"insert", replace ? "True" : "False"}, {"remote", remote == Remote::send ? "send" : "error"}};
  comm::require_same(rows.comm(), "VectorAssembly", facts);
  using Stack = EntryStack<std::int64_t>;
  std::array const stacks{Stack{.rows = i.data(), .count = std::int64_t(i.size()), .turn = replace ? 1 : 0}};
  comm::agree(rows.comm(), [&] {
    if (auto const bad = first_bad_entry(stacks[0], rows, nullptr, remote))
      fail(ErrorKind::value, "VectorAssembly: entry {} is at {}, {}.", bad->number, bad->i, bad->why);
  });
  Layout const entries(rows.comm(), std::int64_t(i.size()));
  auto const given = bring_entries(rows, entries, std::span<Stack const>(stacks));
  auto const plan = std::make_shared<Plan>(Plan{rows, EntrySums(entries, given.numbers, rows.global_size())});
  auto const own = entries.local_size();
  plan->sums.with_index([&]<class I>(I) {
    EntryRows<I> const places(rows, std::span<Stack const>(given.stacks));
    auto const needs_others = [own](auto const& items) {
      return std::any_of(items.begin(), items.end(), [own](auto const& v) { return v.value >= own; });
    };
    auto& sums = plan->sums.arrays.emplace_back();
    sums.make_room<I>(places.rows(), own);
    ReceivedSums<I> received;
    std::int64_t source = 0;
    for (std::int64_t row = 0; row < places.rows(); ++row) {
      auto const items = places.items(row);
      bool const others = needs_others(items);
      if (others) received.add(row, items);
      sums.set(row, source, others ? items.first(0) : items);
      if (!others) source += std::int64_t(items.size());
    }
    received.keep_in(sums);
  });
  plan_ = plan;
}

Layout const& VectorAssembly::entries() const { return plan_->sums.entries; }
Layout const& VectorAssembly::rows() const { return plan_->rows; }

Vector VectorAssembly::vector(Vector const& values) const {
  static int const event = profile::event("VecSetValuesCOO");
  profile::Scope const scope(event);
  plan_->sums.check("VectorAssembly", values, std::nullopt);
  Vector out(plan_->rows, values.dtype(), 1, values.queue());
  std::array const base{Array()}, to{out.data()};
  plan_->sums.run(values, base, to);
  return out;
}

}  // namespace asterism::la
