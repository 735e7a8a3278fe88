#include "asterism/la/formats/row_pattern/row_pattern_format.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/format_argument.hpp"
#include "asterism/la/formats/gpu_tiles.hpp"
#include "asterism/la/formats/row_pattern/value_streams.hpp"

namespace asterism::la {

using kernel::PatternRun;

namespace {

/// Of a block of rows, in the order of their first rows.
struct Found {
  std::vector<PatternRun> runs;
  std::vector<std::int32_t> rest;  // rows in none of them
  std::int64_t covered = 0;        // entries in runs
};

/// Entries outside runs, of all threads. With more than `most` the search ends: a matrix without runs is seen at its first quarter.
struct Outside {
  std::int64_t most;
  std::atomic<std::int64_t> entries{0};
  bool are_too_many() const { return entries.load(std::memory_order_relaxed) > most; }
};

/// Runs of `shortest` rows or more among rows [begin, end).
Found find_runs(Csr const& a, Writes writes, std::int32_t shortest, std::int32_t begin, std::int32_t end, Outside& outside) {
  constexpr std::int32_t longest = 2048;  // so that threads can share a long run
  constexpr std::int32_t most = 4;        // of a step
  constexpr std::int32_t ends = 4;        // rows
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  std::vector<char> taken(std::size_t(end - begin), 0);
  auto const follows = [ptr, col](std::int32_t i, std::int32_t j, std::int32_t step) {  // row j has the columns of i, moved
    auto const length = ptr[i + 1] - ptr[i];
    if (ptr[j + 1] - ptr[j] != length) return false;
    auto const *before = col + ptr[i], *here = col + ptr[j];
    std::int32_t other = 0;
    for (std::int64_t l = 0; l < length; ++l) other |= (here[l] - before[l]) ^ step;
    return other == 0;
  };
  auto const* const val = static_cast<char const*>(a.values.raw(device::Memory::host));
  auto const size = std::int64_t(size_of(a.dtype));
  auto const with_values_of_first = [&](PatternRun const& run) {  // how many of its rows, from the first on
    auto const* const first = val + ptr[run.first] * size;
    std::int32_t l = 1;
    while (l < run.count && std::memcmp(first, val + ptr[run.first + l * run.row_step] * size, std::size_t(run.length * size)) == 0) ++l;
    return l;
  };
  auto const run_from = [&](std::int32_t first, std::int32_t row_step) {
    PatternRun run{first, 1, std::int32_t(ptr[first + 1] - ptr[first]), 0, row_step, 1, 0, 0, 0, 0};
    if (first + row_step >= end || ptr[first + row_step + 1] == ptr[first + row_step]) return run;
    auto const step = col[ptr[first + row_step]] - col[ptr[first]];
    if (step < 1 || step > most || (row_step > 1 && step > 1)) return run;
    run.column_step = step;
    for (auto i = first; run.count < longest && i + row_step < end && !taken[std::size_t(i + row_step - begin)]; ++run.count, i += row_step)
      if (!follows(i, i + row_step, step)) break;
    return run;
  };
  Found out;
  std::int32_t last = 1;  // the step of the run before, which the next one has too in most cases
  std::int64_t alone = 0;
  for (std::int32_t i = begin; i < end; ++i) {
    if ((i - begin) % 1024 == 1023) {
      outside.entries.fetch_add(std::exchange(alone, 0), std::memory_order_relaxed);
      if (outside.are_too_many()) return out;
    }
    if (taken[std::size_t(i - begin)]) continue;
    bool const is_empty = ptr[i + 1] == ptr[i];
    PatternRun run{};
    if (!is_empty) run = run_from(i, last);
    for (std::int32_t step = 1; !is_empty && run.count < shortest && step <= most; ++step)
      if (step != last) run = run_from(i, step);
    if (run.count < shortest) {
      alone += ptr[i + 1] - ptr[i];
      if (!is_empty || writes == Writes::all_rows) out.rest.push_back(i);
      continue;
    }
    last = run.row_step;
    // a few rows at the end of a line that differ are better in the rest than all of a line's values stored
    auto const equal = with_values_of_first(run);
    if (equal >= shortest && run.count - equal <= ends) run.count = equal;
    run.uniform = equal == run.count;
    for (std::int32_t l = 0; l < run.count; ++l) taken[std::size_t(i - begin + l * last)] = 1;
    out.covered += std::int64_t(run.length) * run.count;
    out.runs.push_back(run);
  }
  return out;
}

/// Those of all rows; none crosses from one block of rows into the next. Nothing where more than `most` entries are outside.
Found find_runs(Csr const& a, Writes writes, std::int32_t shortest, std::int64_t most) {
  constexpr std::int32_t block = 1 << 16;
  std::vector<Found> parts((std::size_t(a.rows) + block - 1) / block);
  Outside outside{most};
  device::Executor executor;
  device::parallel_ranges(
      executor, std::int64_t(parts.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (auto b = begin; b < end; ++b) {
          auto const last = std::int32_t(std::min<std::int64_t>((b + 1) * block, a.rows));
          parts[std::size_t(b)] = find_runs(a, writes, shortest, std::int32_t(b * block), last, outside);
        }
      },
      1);
  Found out;
  if (outside.are_too_many()) return out;
  for (auto& part : parts) {
    out.runs.insert(out.runs.end(), part.runs.begin(), part.runs.end());
    out.rest.insert(out.rest.end(), part.rest.begin(), part.rest.end());
    out.covered += part.covered;
  }
  return out;
}

/// Rows of a run that make a register's worth of values, and so the least there may be.
std::int32_t shortest_run(Dtype dtype) { return dtype == Dtype::float32 ? kernel::group_rows<float> : kernel::group_rows<double>; }

std::int64_t most_outside(Csr const& block) { return block.nnz() - block.nnz() * 3 / 4; }
bool suits(Csr const& block, Found const& found) { return !found.runs.empty() && block.nnz() - found.covered <= most_outside(block); }

}  // namespace

template <class S, class V>
void RowPatternFormat::fill(Csr const& a, std::vector<PatternRun>& runs) {
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const val = a.entries<S>();
  using Bits = std::conditional_t<sizeof(V) == 8, std::uint64_t, std::conditional_t<sizeof(V) == 4, std::uint32_t, std::uint16_t>>;
  std::vector<std::int32_t> places{0};
  for (auto const& r : runs) places.push_back(places.back() + r.count);
  device::Executor executor;
  device::parallel_ranges(
      executor, std::int64_t(runs.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (auto n = begin; n < end; ++n) {
          auto& r = runs[std::size_t(n)];
          auto const row = [&](std::int32_t l) { return val.data() + ptr[std::size_t(r.first + l * r.row_step)]; };
          auto const equals_first = [first = row(0), length = r.length](S const* other) {
            Bits differ = 0;
            for (std::int32_t l = 0; l < length; ++l) differ |= std::bit_cast<Bits>(V(first[l])) ^ std::bit_cast<Bits>(V(other[l]));
            return differ == 0;
          };
          auto l = r.uniform ? r.count : 1;  // known
          while (l < r.count && equals_first(row(l))) ++l;
          r.uniform = l == r.count;
          r.place = places[std::size_t(n)];
        }
      },
      32);
  std::int64_t offsets = 0;
  for (auto& r : runs) r.offset_at = std::exchange(offsets, offsets + r.length);
  columns_ = Array(std::size_t(offsets) * sizeof(std::int32_t));
  for (auto const& r : runs)
    for (std::int32_t l = 0; l < r.length; ++l)
      columns_.as<std::int32_t>()[r.offset_at + l] = col[std::size_t(ptr[std::size_t(r.first)] + l)] - r.first;
  auto const group = a.dtype == Dtype::float64 && dtype_ == Dtype::float64 ? kernel::group_rows<double> : kernel::group_rows<float>;
  auto streams = value_streams<S, V>(a, runs, {columns_.as<std::int32_t const>(), std::size_t(offsets)}, group,
                                     writes_ == Writes::all_rows && rows_ == cols_);
  streams_ = std::move(streams.begins);
  values_ = std::move(streams.values);
}

RowPatternFormat::RowPatternFormat(Csr const& a, Writes writes, Dtype dtype, std::vector<PatternRun> runs,
                                   std::vector<std::int32_t> const& rest)
    : SparseFormat(a, dtype), writes_(writes), rest_(a, rest, dtype) {
  if (a.bfloat16) fill<float, Bfloat16>(a, runs);
  else if (a.dtype == Dtype::float32) fill<float, float>(a, runs);
  else if (dtype == Dtype::float32) fill<double, float>(a, runs);
  else fill<double, double>(a, runs);
  runs_ = Array::of(std::span<PatternRun const>(runs));
  make_batches();
}

void RowPatternFormat::make_batches() {
  // of a batch: what they touch fits in the second cache; enough batches for some threads
  auto const rows = std::clamp(rows_in_runs() / 64, 1024, 8192);
  std::span const runs(runs_.as<PatternRun const>(), runs_.bytes() / sizeof(PatternRun));
  auto const rest = rest_.row_ids();
  bool const few = rest_.count() <= rows_in_runs() / 8;  // threads share runs: many rows of the rest might all be one's
  std::vector<kernel::PatternBatch> batches;
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (batches.empty() || runs[r].place - runs[std::size_t(batches.back().run)].place >= rows) {
      auto const before = batches.empty() || !few ? rest.begin() : std::lower_bound(rest.begin(), rest.end(), runs[r].first);
      batches.push_back({std::int32_t(r), std::int32_t(before - rest.begin())});
    }
  batches.push_back({std::int32_t(runs.size()), few ? rest_.count() : 0});
  batches_ = Array::of(std::span<kernel::PatternBatch const>(batches));
  dots_ = few && writes_ == Writes::all_rows && rows_ == cols_ && !bfloat16_ &&
          std::ranges::all_of(runs, [](PatternRun const& r) { return r.row_step == 1; });
}

/// Runs that are too short for float32 are rows of the rest.
std::shared_ptr<SparseFormat const> RowPatternFormat::narrowed(Csr const& block) const {
  std::span const known(runs_.as<PatternRun>(), runs_.bytes() / sizeof(PatternRun));
  Found found;
  found.rest.assign(rest_.row_ids().begin(), rest_.row_ids().end());
  for (auto const& r : known)
    if (r.count >= shortest_run(Dtype::float32)) {
      found.runs.push_back(r);
      found.covered += std::int64_t(r.length) * r.count;
    } else {
      for (std::int32_t l = 0; l < r.count; ++l) found.rest.push_back(r.first + l * r.row_step);
    }
  if (!suits(block, found)) return nullptr;
  std::sort(found.rest.begin(), found.rest.end());
  return std::make_shared<RowPatternFormat const>(block, writes_, Dtype::float32, std::move(found.runs), found.rest);
}

double RowPatternFormat::bytes(std::int64_t k) const {
  return double(columns_.bytes() + streams_.bytes() + values_.bytes()) + rest_.bytes() +
         vector_bytes(k, writes_, rows_in_runs() + rest_.count());
}

std::int32_t RowPatternFormat::rows_in_runs() const {
  auto const& last = runs_.as<PatternRun>()[runs_.bytes() / sizeof(PatternRun) - 1];
  return last.place + last.count;
}

Array const& RowPatternFormat::tiles() const {
  return tiles_.made_by([this] {
    return gpu_tiles(runs_.as<PatternRun>(), std::int32_t(runs_.bytes() / sizeof(PatternRun)), rows_in_runs(),
                     [](PatternRun const& r) { return r.place + r.count; });
  });
}

template <class T, class V>
kernel::PatternBlock<T, V> RowPatternFormat::view(device::Memory m) const {
  kernel::PatternBlock<T, V> out{};
  out.runs = {runs_.as<PatternRun>(m),
              std::int32_t(runs_.bytes() / sizeof(PatternRun)),
              columns_.as<std::int32_t>(m),
              streams_.as<std::int64_t>(m),
              values_.as<V>(m),
              cols_,
              rows_in_runs(),
              tiles_ ? tiles_->as<std::int32_t>(m) : nullptr};
  out.rest = rest_.view<T, V>(m);
  out.batches = batches_.as<kernel::PatternBatch>(m);
  out.batch_count = std::int32_t(batches_.bytes() / sizeof(kernel::PatternBatch)) - 1;
  return out;
}

void RowPatternFormat::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                           Array const& w) const {
  ASTERISM_ASSERT(written_by(e) == writes_);
  auto const submit = [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    submit_product<T, V>(kernel::row_pattern_product<T, V>, *this, queue, e, k, x, y, b, w);
  };
  if (bfloat16_) submit(Tag<float>{}, Tag<Bfloat16>{});
  else if (dtype_ == Dtype::float32) submit(Tag<float>{}, Tag<float>{});
  else submit(Tag<double>{}, Tag<double>{});
}

void RowPatternFormat::run_and_dot(device::Queue const& queue, Epilogue e, Array const& x, Array const& y, Array const& sum, Array const& b,
                                   Array const& w) const {
  ASTERISM_ASSERT(dots_ && (e == Epilogue::assign || e == Epilogue::smooth));
  auto const submit = [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit(queue, kernel::row_pattern_product_and_dot<T, T>, FormatArgument<RowPatternFormat, T>{*this}, e, device::read<T>(x),
                   device::write<T>(y), device::read<T>(b), device::read<T>(w), device::write<kernel::Sum>(sum));
  };
  if (dtype_ == Dtype::float32) submit(Tag<float>{});
  else submit(Tag<double>{});
}

namespace {
/// Where at least three quarters of the entries are in such runs. Of real blocks: for complex ones there is no kernel.
std::shared_ptr<SparseFormat const> row_pattern_of(Csr const& block, Writes writes, Dtype dtype, FormatChoice choice) {
  if (is_complex(block.dtype)) return nullptr;
  bool const must_suit = choice == FormatChoice::where_it_suits;
  auto found = find_runs(block, writes, shortest_run(dtype), must_suit ? most_outside(block) : std::numeric_limits<std::int64_t>::max());
  if (found.runs.empty() || (must_suit && !suits(block, found))) return nullptr;
  return std::make_shared<RowPatternFormat const>(block, writes, dtype, std::move(found.runs), found.rest);
}
}  // namespace

FormatEntry row_pattern_format() {
  return {"row_pattern",
          [](Csr const& block, Writes writes, FormatChoice choice) { return row_pattern_of(block, writes, block.dtype, choice); },
          [](Csr const& block, Writes writes) { return row_pattern_of(block, writes, Dtype::float32, FormatChoice::where_it_suits); }};
}

}  // namespace asterism::la
