#include "asterism/la/formats/row_pattern/row_pattern_format.hpp"

#include <algorithm>
#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/format_argument.hpp"
#include "asterism/la/formats/gpu_tiles.hpp"

namespace asterism::la {

using kernel::PatternRun;

namespace {

/// Runs of `shortest` rows or more, in the order of their first rows. covered: their entries.
std::vector<PatternRun> pattern_runs(Csr const& a, std::int32_t shortest, std::int64_t& covered) {
  constexpr std::int32_t longest = 2048;  // so that threads can share a long run
  constexpr std::int32_t most = 4;        // of a step
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  std::vector<bool> taken(std::size_t(a.rows), false);
  auto const follows = [ptr, col](std::int32_t i, std::int32_t j, std::int32_t step) {  // row j has the columns of i, moved
    auto const length = ptr[i + 1] - ptr[i];
    if (ptr[j + 1] - ptr[j] != length) return false;
    auto const *before = col + ptr[i], *here = col + ptr[j];
    for (std::int64_t l = 0; l < length; ++l)
      if (here[l] != before[l] + step) return false;
    return true;
  };
  auto const run_from = [&](std::int32_t first, std::int32_t row_step) {
    PatternRun run{first, 1, std::int32_t(ptr[first + 1] - ptr[first]), 0, row_step, 1, 0, 0, 0};
    if (first + row_step >= a.rows || ptr[first + row_step + 1] == ptr[first + row_step]) return run;
    auto const step = col[ptr[first + row_step]] - col[ptr[first]];
    if (step < 1 || step > most || (row_step > 1 && step > 1)) return run;
    run.column_step = step;
    for (auto i = first; run.count < longest && i + row_step < a.rows && !taken[std::size_t(i + row_step)]; ++run.count, i += row_step)
      if (!follows(i, i + row_step, step)) break;
    return run;
  };
  std::vector<PatternRun> runs;
  covered = 0;
  std::int32_t last = 1, places = 0;  // last: the step of the run before, which the next one has too in most cases
  for (std::int32_t i = 0; i < a.rows; ++i) {
    if (taken[std::size_t(i)] || ptr[i + 1] == ptr[i]) continue;
    auto run = run_from(i, last);
    for (std::int32_t step = 1; run.count < shortest && step <= most; ++step)
      if (step != last) run = run_from(i, step);
    if (run.count < shortest) continue;
    last = run.row_step;
    for (std::int32_t l = 0; l < run.count; ++l) taken[std::size_t(i + l * last)] = true;
    run.place = places;
    places += run.count;
    covered += std::int64_t(run.length) * run.count;
    runs.push_back(run);
  }
  return runs;
}

std::vector<std::int32_t> rows_in_no_run(Csr const& a, Writes writes, std::vector<PatternRun> const& runs) {
  std::vector<bool> taken(std::size_t(a.rows), false);
  for (auto const& r : runs)
    for (std::int32_t l = 0; l < r.count; ++l) taken[std::size_t(r.first + l * r.row_step)] = true;
  auto const* const ptr = a.offsets.as<std::int64_t>();
  std::vector<std::int32_t> rest;
  for (std::int32_t i = 0; i < a.rows; ++i)
    if (!taken[std::size_t(i)] && (writes == Writes::all_rows || ptr[i + 1] > ptr[i])) rest.push_back(i);
  return rest;
}

}  // namespace

template <class T, class V>
void RowPatternFormat::fill(Csr const& a, std::vector<PatternRun>& runs) {
  constexpr auto W = kernel::group_rows<T>;
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const val = a.entries<T>();
  device::Executor executor;
  device::parallel_ranges(
      executor, std::int64_t(runs.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (auto n = begin; n < end; ++n) {
          auto& r = runs[std::size_t(n)];
          auto const row = [&](std::int32_t l) { return val.data() + ptr[std::size_t(r.first + l * r.row_step)]; };
          auto l = 1;
          while (l < r.count && std::memcmp(row(0), row(l), std::size_t(r.length) * sizeof(T)) == 0) ++l;
          r.uniform = l == r.count;
        }
      },
      32);
  std::int64_t offsets = 0, values = 0;
  for (auto& r : runs) {
    r.offset_at = offsets;
    r.value_at = values;
    offsets += r.length;
    values += r.uniform ? r.length : std::int64_t((r.count + W - 1) / W) * W * r.length;
  }
  columns_ = Array(std::size_t(offsets) * sizeof(std::int32_t));
  values_ = Array(std::size_t(values) * sizeof(V));
  device::parallel_ranges(
      executor, std::int64_t(runs.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (auto n = begin; n < end; ++n) {
          auto const& r = runs[std::size_t(n)];
          for (std::int32_t l = 0; l < r.length; ++l)
            columns_.as<std::int32_t>()[r.offset_at + l] = col[std::size_t(ptr[std::size_t(r.first)] + l)] - r.first;
          auto* out = values_.as<V>() + r.value_at;
          if (r.uniform) {
            auto const* const first = val.data() + ptr[std::size_t(r.first)];
            std::transform(first, first + r.length, out, [](T v) { return V(v); });
            continue;
          }
          for (std::int32_t at = 0; at < r.count; at += W, out += std::int64_t(W) * r.length) {
            auto const l0 = at + W <= r.count ? at : r.count - W;
            for (std::int32_t i = 0; i < W; ++i) {
              auto const* const in = val.data() + ptr[std::size_t(r.first + (l0 + i) * r.row_step)];
              for (std::int32_t l = 0; l < r.length; ++l) out[l * W + i] = V(in[l]);
            }
          }
        }
      },
      32);
}

RowPatternFormat::RowPatternFormat(Csr const& a, Writes writes, std::vector<PatternRun> runs)
    : SparseFormat(a), writes_(writes), rest_(a, rows_in_no_run(a, writes, runs)) {
  if (a.bfloat16) fill<float, Bfloat16>(a, runs);
  else if (a.dtype == Dtype::float32) fill<float, float>(a, runs);
  else fill<double, double>(a, runs);
  runs_ = Array::of(std::span<PatternRun const>(runs));
}

double RowPatternFormat::bytes(std::int64_t k) const {
  return double(columns_.bytes() + values_.bytes()) + rest_.bytes() + vector_bytes(k, writes_, rows_in_runs() + rest_.count());
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
  out.runs = {
      runs_.as<PatternRun>(m), std::int32_t(runs_.bytes() / sizeof(PatternRun)), columns_.as<std::int32_t>(m), values_.as<V>(m), cols_,
      rows_in_runs(),          tiles_ ? tiles_->as<std::int32_t>(m) : nullptr};
  out.rest = rest_.view<T, V>(m);
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

/// Where at least three quarters of the entries are in such runs. Of real blocks: for complex ones there is no kernel.
FormatEntry row_pattern_format() {
  return {"row_pattern", [](Csr const& block, Writes writes, FormatChoice choice) -> std::shared_ptr<SparseFormat const> {
            if (is_complex(block.dtype)) return nullptr;
            std::int64_t covered = 0;
            auto runs = pattern_runs(block, block.dtype == Dtype::float32 ? 16 : 8, covered);
            if (covered == 0 || (choice == FormatChoice::where_it_suits && covered < block.nnz() * 3 / 4)) return nullptr;
            return std::make_shared<RowPatternFormat const>(block, writes, std::move(runs));
          }};
}

}  // namespace asterism::la
