#include "asterism/la/formats/row_pattern/row_pattern_format.hpp"

#include <algorithm>
#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/format_argument.hpp"
#include "asterism/la/formats/gpu_tiles.hpp"

namespace asterism::la {

using kernel::PatternRun;

namespace {

/// Rows with the same column offsets, `shortest` or more. covered: their entries.
std::vector<PatternRun> pattern_runs(Csr const& a, std::int32_t shortest, std::int64_t& covered) {
  constexpr std::int32_t longest = 2048;  // so that threads can share a long run
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  std::vector<PatternRun> runs;
  covered = 0;
  auto const continues = [ptr, col](std::int32_t i) {  // row i has the offsets of the one before
    auto const length = ptr[i] - ptr[i - 1];
    if (ptr[i + 1] - ptr[i] != length) return false;
    auto const *before = col + ptr[i - 1], *here = col + ptr[i];
    for (std::int64_t l = 0; l < length; ++l)
      if (here[l] != before[l] + 1) return false;
    return true;
  };
  for (std::int32_t i = 0; i < a.rows;) {
    auto j = i + 1;
    while (j < a.rows && j - i < longest && continues(j)) ++j;
    auto const length = ptr[i + 1] - ptr[i];
    if (j - i >= shortest && length > 0) {
      runs.push_back({i, j, std::int32_t(length), 0, 0, 0});
      covered += length * (j - i);
    }
    i = j;
  }
  return runs;
}

std::vector<std::int32_t> rows_in_no_run(std::vector<PatternRun> const& runs, std::int32_t rows) {
  std::vector<std::int32_t> rest;
  std::int32_t next = 0;
  for (auto const& r : runs) {
    for (; next < r.first; ++next) rest.push_back(next);
    next = r.end;
  }
  for (; next < rows; ++next) rest.push_back(next);
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
          auto const* const first = val.data() + ptr[std::size_t(r.first)];
          auto i = 1;
          while (i < r.end - r.first && std::memcmp(first, first + std::int64_t(i) * r.length, std::size_t(r.length) * sizeof(T)) == 0) ++i;
          r.uniform = i == r.end - r.first;
        }
      },
      32);
  std::int64_t offsets = 0, values = 0;
  for (auto& r : runs) {
    r.offset_at = offsets;
    r.value_at = values;
    offsets += r.length;
    values += r.uniform ? r.length : std::int64_t((r.end - r.first + W - 1) / W) * W * r.length;
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
          for (auto at = r.first; at < r.end; at += W, out += std::int64_t(W) * r.length) {
            auto const i0 = at + W <= r.end ? at : r.end - W;
            auto const* in = val.data() + ptr[std::size_t(i0)];
            for (std::int32_t l = 0; l < r.length; ++l)
              for (std::int32_t i = 0; i < W; ++i) out[l * W + i] = V(in[i * r.length + l]);
          }
        }
      },
      32);
}

RowPatternFormat::RowPatternFormat(Csr const& a, std::vector<PatternRun> runs) : SparseFormat(a), rest_(a, rows_in_no_run(runs, a.rows)) {
  if (a.bfloat16) fill<float, Bfloat16>(a, runs);
  else if (a.dtype == Dtype::float32) fill<float, float>(a, runs);
  else fill<double, double>(a, runs);
  runs_ = Array::of(std::span<PatternRun const>(runs));
}

double RowPatternFormat::bytes(std::int64_t k) const {
  return double(columns_.bytes() + values_.bytes()) + rest_.bytes() + vector_bytes(k, Writes::all_rows, 0);
}

Array const& RowPatternFormat::tiles() const {
  return tiles_.made_by([this] {
    return gpu_tiles(runs_.as<PatternRun>(), std::int32_t(runs_.bytes() / sizeof(PatternRun)), rows_,
                     [](PatternRun const& r) { return r.end; });
  });
}

template <class T, class V>
kernel::PatternBlock<T, V> RowPatternFormat::view(device::Memory m) const {
  kernel::PatternBlock<T, V> out{};
  out.runs = {runs_.as<PatternRun>(m),
              std::int32_t(runs_.bytes() / sizeof(PatternRun)),
              columns_.as<std::int32_t>(m),
              values_.as<V>(m),
              rows_,
              tiles_ ? tiles_->as<std::int32_t>(m) : nullptr};
  out.rest = rest_.view<T, V>(m);
  return out;
}

void RowPatternFormat::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                           Array const& w) const {
  ASTERISM_ASSERT(written_by(e) == Writes::all_rows);
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
            if (writes != Writes::all_rows || is_complex(block.dtype)) return nullptr;
            std::int64_t covered = 0;
            auto runs = pattern_runs(block, block.dtype == Dtype::float32 ? 16 : 8, covered);
            if (covered == 0 || (choice == FormatChoice::where_it_suits && covered < block.nnz() * 3 / 4)) return nullptr;
            return std::make_shared<RowPatternFormat const>(block, std::move(runs));
          }};
}

}  // namespace asterism::la
