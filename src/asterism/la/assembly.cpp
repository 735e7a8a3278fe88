#include "asterism/la/assembly.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/la/assembly.kernels.hpp"

namespace asterism::la {

namespace {

/// The entries of one block as sums; I is the plan's.
struct BlockSums {
  Array offsets, sources;  // of all entries; none for those that need others' values
  std::int64_t entries = 0;
  Array received_places, received_offsets, received_sources;  // of those
  std::int64_t received = 0;

  template <class I, class T>
  void own(Queue const& queue, Array const& values, Array const& base, Array const& out) const {
    device::submit(queue, kernel::sum_entries<I, T>, entries, device::read<I>(offsets), device::read<I>(sources), device::read<T>(values),
                   device::read<T>(base), device::write<T>(out));
  }
  template <class I, class T>
  void with_received(Queue const& queue, std::int64_t first_received, Array const& values, Array const& others, Array const& base,
                     Array const& out) const {
    if (received == 0) return;
    device::submit(queue, kernel::sum_received_entries<I, T>, received, device::read<I>(received_places), device::read<I>(received_offsets),
                   device::read<I>(received_sources), first_received, device::read<T>(values), device::read<T>(others),
                   device::read<T>(base), device::update<T>(out));
  }
};

/// A block's entries while they are counted and then filled.
template <class I>
struct BlockBuilder {
  std::vector<std::int64_t> row_entries, row_sources;  // by row, then where each row begins
  Csr block;
  std::vector<I> places, ends, sources;  // of entries that need others' values

  explicit BlockBuilder(std::size_t rows) : row_entries(rows + 1, 0), row_sources(rows + 1, 0) {}
};

void to_starts(std::vector<std::int64_t>& counts) {  // counts[r + 1] is row r's
  for (std::size_t r = 1; r < counts.size(); ++r) counts[r] += counts[r - 1];
}

}  // namespace

struct Assembly::Plan {
  Layout entries;
  Matrix pattern;      // of no values
  bool narrow = true;  // 32-bit sources
  BlockSums diagonal, coupling;
  std::int64_t received = 0;
  std::optional<comm::QueuedForest> others;  // entries that other ranks have and I need
  // values of matrices made before: fresh memory costs as much as a third of the sums
  mutable std::mutex mutex;
  struct Made {
    Array values;
    device::Memory memory;
  };
  mutable std::vector<Made> made[2];  // of either block

  Array values_for(Queue const& queue, int block, std::size_t bytes) const;

  template <class I>
  void build(Layout const& rows, Layout const& columns, std::span<std::int64_t const> i, std::span<std::int64_t const> j,
             std::vector<comm::Parcel> const& parcels);
  template <class I, class T>
  Matrix with(Vector const& values, Matrix const* base) const;
};

namespace {
/// One of another rank's that is in a row of mine.
struct Announced {
  std::int64_t row, column, entry;
};
}  // namespace

Assembly::Assembly(Layout const& rows, Layout const& columns, std::span<std::int64_t const> i, std::span<std::int64_t const> j)
    : plan_(std::make_shared<Plan>()) {
  static int const event = profile::event("MatPreallocateCOO");
  profile::Scope const scope(event);
  auto const& comm = rows.comm();
  auto& p = *plan_;
  comm::agree(comm, [&] {
    checked_local_index(rows.local_size(), "rows of one rank");
    ASTERISM_REQUIRE(i.size() == j.size(), shape, "Assembly: {} row indices but {} column indices.", i.size(), j.size());
    auto const n = rows.global_size(), m = columns.global_size();
    for (std::size_t e = 0; e < i.size(); ++e)
      ASTERISM_REQUIRE(i[e] < n && j[e] < m, value, "Assembly: entry {} is at ({}, {}), outside the {} x {} matrix.", e, i[e], j[e], n, m);
  });
  p.entries = Layout(comm, std::int64_t(i.size()));
  std::vector<comm::Parcel> parcels;
  if (comm.size() > 1) {
    std::vector<std::vector<Announced>> to(static_cast<std::size_t>(comm.size()));
    for (std::size_t e = 0; e < i.size(); ++e)
      if (i[e] >= 0 && j[e] >= 0 && !rows.owns(i[e]))
        to[std::size_t(rows.owner(i[e]))].push_back({i[e], j[e], p.entries.begin() + std::int64_t(e)});
    for (int r = 0; r < comm.size(); ++r)
      if (!to[std::size_t(r)].empty()) {
        comm::Parcel parcel{r, {}};
        comm::append<Announced>(parcel.data, to[std::size_t(r)]);
        to[std::size_t(r)] = {};
        parcels.push_back(std::move(parcel));
      }
    parcels = comm::exchange(comm, std::move(parcels));
  }
  for (auto const& parcel : parcels) p.received += std::int64_t(parcel.data.size() / sizeof(Announced));
  auto const most = std::max(p.entries.local_size() + p.received, columns.global_size());
  p.narrow = most < limits().narrow_index;
  if (p.narrow) p.build<std::int32_t>(rows, columns, i, j, parcels);
  else p.build<std::int64_t>(rows, columns, i, j, parcels);
}

template <class I>
void Assembly::Plan::build(Layout const& rows, Layout const& columns, std::span<std::int64_t const> i, std::span<std::int64_t const> j,
                           std::vector<comm::Parcel> const& parcels) {
  struct Item {
    I column, source;
  };
  auto const first = rows.begin(), own = entries.local_size();
  auto const n = std::size_t(rows.local_size());
  // by row, in the order of (rank, position)
  auto const each = [&](auto const& f) {
    auto source = own;
    auto const of_others = [&](bool lower) {
      for (auto const& parcel : parcels)
        if ((parcel.rank < rows.comm().rank()) == lower)
          for (std::size_t at = 0; at < parcel.data.size(); at += sizeof(Announced), ++source) {
            Announced a;
            std::memcpy(&a, parcel.data.data() + at, sizeof(a));
            f(std::size_t(a.row - first), a.column, source);
          }
    };
    of_others(true);
    for (std::size_t e = 0; e < i.size(); ++e)
      if (j[e] >= 0 && rows.owns(i[e])) f(std::size_t(i[e] - first), j[e], std::int64_t(e));
    of_others(false);
  };
  std::vector<std::int64_t> starts(n + 1, 0);
  each([&](std::size_t row, std::int64_t, std::int64_t) { ++starts[row + 1]; });
  to_starts(starts);
  auto const items = std::make_unique_for_overwrite<Item[]>(std::size_t(starts[n]));
  {
    auto next = starts;
    each([&](std::size_t row, std::int64_t column, std::int64_t source) { items[std::size_t(next[row]++)] = {I(column), I(source)}; });
  }

  // each row by columns; what stands at one column keeps its order
  auto const c0 = columns.begin(), c1 = columns.end();
  auto const is_mine = [=](I c) { return c >= c0 && c < c1; };
  BlockBuilder<I> diagonal_rows(n), coupling_rows(n);
  auto const each_entry = [&, own](std::size_t row, auto const& f) {  // f(column, first item, its end, whether others' values are needed)
    for (auto p = starts[row]; p < starts[row + 1];) {
      auto const column = items[std::size_t(p)].column;
      auto const begin = p;
      bool others = false;
      for (; p < starts[row + 1] && items[std::size_t(p)].column == column; ++p) others = others || items[std::size_t(p)].source >= own;
      f(column, begin, p, others);
    }
  };
  device::Executor executor;
  device::parallel_ranges(
      executor, std::int64_t(n),
      [&](std::int64_t begin, std::int64_t end) {
        for (auto row = std::size_t(begin); row < std::size_t(end); ++row) {
          auto* const b = items.get() + starts[row];
          std::stable_sort(b, items.get() + starts[row + 1], [](Item const& x, Item const& y) { return x.column < y.column; });
          each_entry(row, [&](I column, std::int64_t from, std::int64_t until, bool others) {
            auto& block = is_mine(column) ? diagonal_rows : coupling_rows;
            ++block.row_entries[row + 1];
            if (!others) block.row_sources[row + 1] += until - from;
          });
        }
      },
      256);

  std::vector<std::int64_t> ghosts;
  for (auto* const block : {&diagonal_rows, &coupling_rows}) to_starts(block->row_entries), to_starts(block->row_sources);
  if (coupling_rows.row_entries[n] > 0) {
    for (std::int64_t p = 0; p < starts[n]; ++p)
      if (!is_mine(items[std::size_t(p)].column)) ghosts.push_back(items[std::size_t(p)].column);
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  }

  auto const fill = [&](BlockBuilder<I>& from, BlockSums& sums, std::int32_t width, bool mine, auto const& local_column) {
    auto& block = from.block;
    sums.entries = from.row_entries[n];
    block.rows = std::int32_t(n);
    block.cols = width;
    block.offsets = Array::of(std::span<std::int64_t const>(from.row_entries));
    block.columns = Array(std::size_t(sums.entries) * sizeof(std::int32_t));
    sums.offsets = Array(std::size_t(sums.entries + 1) * sizeof(I));
    sums.sources = Array(std::size_t(from.row_sources[n] + kernel::sources_ahead) * sizeof(I));
    std::fill_n(sums.sources.template as<I>() + from.row_sources[n], kernel::sources_ahead, I(0));
    auto* const to_column = block.columns.template as<std::int32_t>();
    auto *const to_offset = sums.offsets.template as<I>(), *const to_source = sums.sources.template as<I>();
    to_offset[0] = 0;
    device::parallel_ranges(
        executor, std::int64_t(n),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto row = std::size_t(begin); row < std::size_t(end); ++row) {
            auto at = from.row_entries[row], source = from.row_sources[row];
            each_entry(row, [&](I column, std::int64_t p, std::int64_t until, bool others) {
              if (is_mine(column) != mine) return;
              to_column[at] = local_column(column);
              for (; !others && p < until; ++p) to_source[source++] = items[std::size_t(p)].source;
              to_offset[++at] = I(source);
            });
          }
        },
        256);
    if (received == 0) return;
    for (std::size_t row = 0; row < n; ++row) {
      auto at = from.row_entries[row];
      each_entry(row, [&](I column, std::int64_t p, std::int64_t until, bool others) {
        if (is_mine(column) != mine) return;
        if (others) {
          if (from.places.empty()) from.ends.push_back(0);
          from.places.push_back(I(at));
          for (; p < until; ++p) from.sources.push_back(items[std::size_t(p)].source);
          from.ends.push_back(I(from.sources.size()));
        }
        ++at;
      });
    }
    sums.received = std::int64_t(from.places.size());
    sums.received_places = Array::of(std::span<I const>(from.places));
    sums.received_offsets = Array::of(std::span<I const>(from.ends));
    sums.received_sources = Array::of(std::span<I const>(from.sources));
  };
  comm::agree(rows.comm(), [&] {
    fill(diagonal_rows, diagonal, checked_local_index(columns.local_size(), "columns of one rank"), true,
         [=](I c) { return std::int32_t(c - c0); });
    fill(coupling_rows, coupling, checked_local_index(std::int64_t(ghosts.size()), "ghost columns of one rank"), false,
         [&](I c) { return std::int32_t(std::lower_bound(ghosts.begin(), ghosts.end(), c) - ghosts.begin()); });
  });
  pattern = Matrix::from_blocks(rows, columns, std::move(diagonal_rows.block), std::move(coupling_rows.block), std::move(ghosts));
  if (rows.comm().max(received) > 0) {
    std::vector<std::int64_t> needed;
    needed.reserve(std::size_t(received));
    for (auto const& parcel : parcels)
      for (auto const& a : comm::items_of<Announced>(parcel.data)) needed.push_back(a.entry);
    auto forest = comm::StarForest::from_layout(entries, needed);
    forest.set_name("entries of other ranks");
    others.emplace(std::move(forest));
  }
}

Layout const& Assembly::entries() const { return plan_->entries; }
std::int64_t Assembly::nnz() const { return plan_->pattern.nnz(); }

Matrix Assembly::matrix(Vector const& values, Matrix const* base) const {
  static int const event = profile::event("MatSetValuesCOO");
  auto const& p = *plan_;
  auto const& comm = p.entries.comm();
  auto const what = 2 * std::int64_t(values.dtype()) + (base ? 1 : 0), least = comm.min(what);
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(values.local_size() == p.entries.local_size() && values.columns() == 1, shape,
                     "Assembly: values of shape ({}, {}) for {} entries of rank {}.", values.local_size(), values.columns(),
                     p.entries.local_size(), comm.rank());
    ASTERISM_REQUIRE(what / 2 == least / 2, dtype, "Assembly: the values of this rank are {}, and {} on another.", name_of(values.dtype()),
                     name_of(Dtype(least / 2)));
    ASTERISM_REQUIRE(what == least, value, "Assembly: this rank adds to a matrix, another does not. Give one on all, or on none.");
    if (!base) return;
    ASTERISM_REQUIRE(!base->half() && base->shares_pattern_with(p.pattern), value,
                     "Assembly: the matrix to add to ({}) did not come from this assembly.", base->describe());
    ASTERISM_REQUIRE(base->dtype() == values.dtype(), dtype, "Assembly: {} values are added to a {} matrix.", name_of(values.dtype()),
                     name_of(base->dtype()));
  });
  auto const scalar = double(size_of(values.dtype()));
  profile::Scope const scope(event,
                             double(p.entries.local_size()) * (scalar + (p.narrow ? 4 : 8)) + double(p.pattern.local_nnz()) * (scalar + 4));
  return with_dtype(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return p.narrow ? p.with<std::int32_t, T>(values, base) : p.with<std::int64_t, T>(values, base);
  });
}

/// Fresh, or of a matrix that nobody has any more; one that is in use and one for the next are remembered.
Array Assembly::Plan::values_for(Queue const& queue, int block, std::size_t bytes) const {
  std::lock_guard const lock(mutex);
  auto& all = made[block];
  std::erase_if(all, [&](Made const& m) { return m.memory != queue.memory() || m.values.bytes() != bytes; });
  for (auto& m : all)
    if (m.values.buffer().use_count() == 1) {
      m.values.discard();
      return m.values;
    }
  auto const fresh = Array::fresh(queue, bytes);
  if (all.size() == 2) all.erase(all.begin());
  all.push_back({fresh, queue.memory()});
  return fresh;
}

template <class I, class T>
Matrix Assembly::Plan::with(Vector const& values, Matrix const* base) const {
  auto const& queue = values.queue();
  auto const [base_diagonal, base_coupling] = base ? base->block_values() : std::pair<Array, Array>();
  auto const in_diagonal = values_for(queue, 0, std::size_t(diagonal.entries) * sizeof(T));
  auto const in_coupling = values_for(queue, 1, std::size_t(coupling.entries) * sizeof(T));
  auto const from_others = Array::fresh(queue, std::size_t(received) * sizeof(T));
  std::optional<comm::QueuedForest::Flight> flight;
  if (others) flight = others->bcast_begin(queue, dtype_v<T>, 1, values.data(), from_others);
  diagonal.own<I, T>(queue, values.data(), base_diagonal, in_diagonal);
  coupling.own<I, T>(queue, values.data(), base_coupling, in_coupling);
  if (flight) flight->end();
  diagonal.with_received<I, T>(queue, entries.local_size(), values.data(), from_others, base_diagonal, in_diagonal);
  coupling.with_received<I, T>(queue, entries.local_size(), values.data(), from_others, base_coupling, in_coupling);
  return pattern.with_block_values(dtype_v<T>, in_diagonal, in_coupling, queue.memory());
}

}  // namespace asterism::la
