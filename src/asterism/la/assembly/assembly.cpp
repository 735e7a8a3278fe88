#include "asterism/la/assembly/assembly.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/la/assembly/entry_sums.hpp"

namespace asterism::la {

struct Assembly::Plan {
  char const* name;  // for messages
  Matrix pattern;    // of no values
  EntrySums sums;    // of the values of both blocks
  // values of matrices made before: fresh memory costs as much as a third of the sums
  mutable std::mutex mutex;
  struct Made {
    Array values;
    device::Memory memory;
  };
  mutable std::vector<Made> made[2];  // of either block

  Array values_for(Queue const& queue, int block, std::size_t bytes) const;
  template <class I, class J>
  void build(Layout const& rows, Layout const& columns, RowEntries<J> const& given);
};

template <class J>
Assembly::Assembly(Layout const& rows, Layout const& columns, std::span<EntryStack<J> const> stacks, Remote remote, char const* what)
    : plan_(std::make_shared<Plan>()) {
  plan_->name = what;
  static int const event = profile::event("MatPreallocateCOO");
  profile::Scope const scope(event);
  std::int64_t own = 0;
  comm::agree(rows.comm(), [&] {
    checked_local_index(rows.local_size(), "rows of one rank");
    for (auto const& s : stacks) {
      if (auto const bad = first_bad_entry(s, rows, &columns, remote))
        fail(ErrorKind::value, "{}: entry {} is at ({}, {}), {}.", what, s.first + bad->number, bad->i, bad->j, bad->why);
      own += s.values();
    }
  });
  Layout const entries(rows.comm(), own);
  auto const given = bring_entries(rows, entries, stacks);
  plan_->sums = EntrySums(entries, given.numbers, columns.global_size());
  plan_->sums.with_index([&]<class I>(I) { plan_->build<I>(rows, columns, given); });
}
template Assembly::Assembly(Layout const&, Layout const&, std::span<EntryStack<std::int32_t> const>, Remote, char const*);
template Assembly::Assembly(Layout const&, Layout const&, std::span<EntryStack<std::int64_t> const>, Remote, char const*);

Assembly::Assembly(Layout const& rows, Layout const& columns, std::span<std::int64_t const> i, std::span<std::int64_t const> j)
    : Assembly(rows, columns, std::span<EntryStack<std::int64_t> const>(std::array{single_entries(rows, "Assembly", i, j)})) {}

template <class I, class J>
void Assembly::Plan::build(Layout const& rows, Layout const& columns, RowEntries<J> const& given) {
  EntryPattern<I> places(rows, columns, std::span<EntryStack<J> const>(given.stacks), sums.entries.local_size());
  sums.arrays.resize(2);
  comm::agree(rows.comm(), [&] {
    for (std::size_t b = 0; b < 2; ++b) sums.arrays[b].make_room<I>(places.row_entries[b].back(), places.row_values[b].back());
    places.fill([&](std::size_t b, std::int64_t at, std::int64_t source, std::span<EntryItem<I> const> items, bool others) {
      sums.arrays[b].set(at, source, others ? items.first(0) : items);
    });
    ReceivedSums<I> received[2];
    for (auto const row : rows_among(given.rows, rows)) {
      std::int64_t at[] = {places.row_entries[0][std::size_t(row)], places.row_entries[1][std::size_t(row)]};
      places.rows.each_entry(row, [&](I column, std::span<EntryItem<I> const> items) {
        auto const b = places.block_of(column);
        if (places.needs_others(items)) received[b].add(at[b], items);
        ++at[b];
      });
    }
    for (std::size_t b = 0; b < 2; ++b) received[b].keep_in(sums.arrays[b]);
  });
  pattern = Matrix::from_blocks(rows, columns, std::move(places.blocks[0]), std::move(places.blocks[1]), std::move(places.ghosts));
}

Layout const& Assembly::entries() const { return plan_->sums.entries; }
std::int64_t Assembly::nnz() const { return plan_->pattern.nnz(); }

Matrix Assembly::matrix(Vector const& values, Matrix const* base) const {
  static int const event = profile::event("MatSetValuesCOO");
  auto const& p = *plan_;
  p.sums.check(p.name, values, base ? std::optional(base->dtype()) : std::nullopt);
  comm::agree(p.sums.entries.comm(), [&] {
    ASTERISM_REQUIRE(!base || (!base->half() && base->shares_pattern_with(p.pattern)), value,
                     "Assembly: the matrix to add to ({}) did not come from this assembly.", base->describe());
  });
  auto const scalar = size_of(values.dtype());
  profile::Scope const scope(
      event, double(values.local_size()) * double(scalar + (p.sums.narrow ? 4 : 8)) + double(p.pattern.local_nnz()) * double(scalar + 4));
  auto const& queue = values.queue();
  auto const of_base = base ? base->block_values() : std::pair<Array, Array>();
  std::array const from{of_base.first, of_base.second};
  std::array const to{p.values_for(queue, 0, std::size_t(p.sums.arrays[0].entries) * scalar),
                      p.values_for(queue, 1, std::size_t(p.sums.arrays[1].entries) * scalar)};
  p.sums.run(values, from, to);
  return p.pattern.with_block_values(values.dtype(), to[0], to[1], queue.memory());
}

/// Fresh, or of a matrix that nobody has any more; one that is in use and one for the next are remembered.
Array Assembly::Plan::values_for(Queue const& queue, int block, std::size_t bytes) const {
  std::lock_guard const lock(mutex);
  auto& all = made[block];
  std::erase_if(all, [&](Made const& m) { return m.memory != queue.memory() || m.values.bytes() != bytes; });
  for (auto& m : all)
    if (m.values.buffer().use_count() == 1) {
      std::atomic_thread_fence(std::memory_order_acquire);  // what the last one who had it did
      m.values.discard();
      return m.values;
    }
  auto const fresh = Array::fresh(queue, bytes);
  if (all.size() == 2) all.erase(all.begin());
  all.push_back({fresh, queue.memory()});
  return fresh;
}

}  // namespace asterism::la
