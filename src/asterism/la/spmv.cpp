#include "asterism/la/spmv.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"
#include "asterism/la/spmv.kernels.hpp"

namespace asterism::la {

using kernel::LengthRun;
using kernel::PatternRun;

struct ProductBuilder {
  static constexpr std::int32_t window = 1024;  // their part of y stays in the first cache

  /// Runs of rows with one length, for the unrolled loops; short ones are joined into "any" (0).
  static void length_runs(Product& p, std::int64_t const* offsets, std::int32_t rows) {
    std::vector<LengthRun> runs;
    for (std::int32_t i = 0; i < rows;) {
      auto const length = std::int32_t(offsets[i + 1] - offsets[i]);
      auto j = i + 1;
      while (j < rows && offsets[j + 1] - offsets[j] == length) ++j;
      bool const unrolled = length >= 1 && length <= 9 && j - i >= 4;
      if (!unrolled && !runs.empty() && runs.back().length == 0) runs.back().end = j;
      else runs.push_back({i, j, unrolled ? length : 0});
      i = j;
    }
    p.lengths_ = Array::of(std::span<LengthRun const>(runs));
    p.length_runs_ = std::int32_t(runs.size());
  }

  /// Rows whose lengths change from one to the next make the end of each inner loop a misprediction.
  static bool irregular(std::int64_t const* offsets, std::int32_t rows) {
    if (rows < 4 * window) return false;
    std::int64_t changes = 0;
    for (std::int32_t i = 1; i < rows; ++i) changes += offsets[i + 1] - offsets[i] != offsets[i] - offsets[i - 1];
    return 12 * changes > rows && offsets[rows] < 64 * std::int64_t(rows);  // long rows hide it
  }

  /// Whether x is larger than the second cache and most entries would miss there: counted on a sample of the rows
  /// with a cache of one place a line.
  static bool scattered(Csr const& a) {
    std::int64_t const per_line = std::max<std::int64_t>(1, 64 / std::int64_t(size_of(a.dtype)));
    constexpr std::int64_t lines = 8192;
    if (a.cols / per_line < 4 * lines) return false;
    auto const* const ptr = a.offsets.as<std::int64_t>();
    auto const* const col = a.columns.as<std::int32_t>();
    std::vector<std::int64_t> held(lines, -1);
    std::int64_t entries = 0, misses = 0;
    for (int part = 0; part < 3; ++part) {
      auto const first = std::int32_t(std::int64_t(a.rows) * part / 3), last = std::int32_t(std::min<std::int64_t>(a.rows, first + 16384L));
      for (auto p = ptr[first]; p < ptr[last]; ++p) {
        auto const line = col[p] / per_line;
        auto& place = held[std::size_t(line % lines)];
        misses += place != line;
        place = line;
      }
      entries += ptr[last] - ptr[first];
    }
    return 2 * misses > entries;
  }

  /// The rows of each window by their length; a copy. `ids` names the listed rows (empty: all).
  static void sort_by_length(Product& p, Csr const& a, std::span<std::int32_t const> ids) {
    auto const ptr = a.row_offsets();
    auto const n = ids.empty() ? a.rows : std::int32_t(ids.size());
    auto const row = [&](std::int32_t i) { return ids.empty() ? i : ids[std::size_t(i)]; };
    auto const length = [&](std::int32_t i) { return ptr[std::size_t(i) + 1] - ptr[std::size_t(i)]; };
    p.storage_ = Product::Storage::sorted_rows;
    p.listed_rows_ = n;
    p.row_ids_ = Array(std::size_t(n) * sizeof(std::int32_t));
    p.offsets_ = Array((std::size_t(n) + 1) * sizeof(std::int64_t));
    p.columns_ = Array(std::size_t(a.nnz() + kernel::ahead) * sizeof(std::int32_t));
    std::fill_n(p.columns_.as<std::int32_t>() + a.nnz(), kernel::ahead, 0);
    p.values_ = Array(std::size_t(a.nnz()) * size_of(a.dtype));
    p.scattered_ = scattered(a);
    auto* const order = p.row_ids_.as<std::int32_t>();
    auto* const offsets = p.offsets_.as<std::int64_t>();
    std::vector<std::int32_t> count;
    for (std::int32_t first = 0; first < n; first += window) {
      auto const last = std::min(n, first + window);
      count.assign(66, 0);
      auto const key = [&](std::int32_t i) { return std::size_t(std::min<std::int64_t>(length(row(i)), 64)); };
      for (auto i = first; i < last; ++i) ++count[key(i) + 1];
      for (std::size_t l = 1; l < count.size(); ++l) count[l] += count[l - 1];
      for (auto i = first; i < last; ++i) order[first + count[key(i)]++] = row(i);
    }
    offsets[0] = 0;
    for (std::int32_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + length(order[i]);
    with_dtype(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const* from_col = a.columns.as<std::int32_t>();
      auto const* from_val = a.values.as<T>();
      auto* const to_col = p.columns_.as<std::int32_t>();
      auto* const to_val = p.values_.template as<T>();
      device::Queue q;
      device::parallel_for(q, n, [&](std::int64_t i) {
        auto at = offsets[i];
        auto const end = offsets[i + 1];
        for (auto from = ptr[std::size_t(order[i])]; at < end; ++at, ++from) to_col[at] = from_col[from], to_val[at] = from_val[from];
      });
    });
    length_runs(p, offsets, n);
  }

  static std::vector<PatternRun> pattern_runs(Csr const& a, std::int32_t shortest, std::int64_t& covered) {
    constexpr std::int32_t longest = 2048;  // so that threads can share a long run
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    std::vector<PatternRun> runs;
    covered = 0;
    auto const same = [&](std::int32_t i, std::int32_t j) {
      auto const n = ptr[std::size_t(i) + 1] - ptr[std::size_t(i)];
      if (n != ptr[std::size_t(j) + 1] - ptr[std::size_t(j)]) return false;
      auto const* ci = col.data() + ptr[std::size_t(i)];
      auto const* cj = col.data() + ptr[std::size_t(j)];
      for (std::int64_t l = 0; l < n; ++l)
        if (ci[l] - i != cj[l] - j) return false;
      return true;
    };
    for (std::int32_t i = 0; i < a.rows;) {
      auto j = i + 1;
      while (j < a.rows && j - i < longest && same(j - 1, j)) ++j;
      auto const length = ptr[std::size_t(i) + 1] - ptr[std::size_t(i)];
      if (j - i >= shortest && length > 0) {
        runs.push_back({i, j, std::int32_t(length), 0, 0, 0});
        covered += length * (j - i);
      }
      i = j;
    }
    return runs;
  }

  template <class T>
  static void fill_pattern(Product& p, Csr const& a, std::vector<PatternRun> runs) {
    constexpr auto W = kernel::group_rows<T>;
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    std::int64_t offsets = 0, values = 0;
    for (auto& r : runs) {
      r.offset_at = offsets;
      r.value_at = values;
      offsets += r.length;
      values += std::int64_t((r.end - r.first + W - 1) / W) * W * r.length;
    }
    p.run_columns_ = Array(std::size_t(offsets) * sizeof(std::int32_t));
    p.run_values_ = Array(std::size_t(values) * sizeof(T));
    device::Queue q;
    device::parallel_ranges(
        q, std::int64_t(runs.size()),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto n = begin; n < end; ++n) {
            auto const& r = runs[std::size_t(n)];
            for (std::int32_t l = 0; l < r.length; ++l)
              p.run_columns_.as<std::int32_t>()[r.offset_at + l] = col[std::size_t(ptr[std::size_t(r.first)] + l)] - r.first;
            auto* out = p.run_values_.as<T>() + r.value_at;
            for (auto at = r.first; at < r.end; at += W, out += std::int64_t(W) * r.length) {
              auto const i0 = at + W <= r.end ? at : r.end - W;
              auto const* in = val.data() + ptr[std::size_t(i0)];
              for (std::int32_t l = 0; l < r.length; ++l)
                for (std::int32_t i = 0; i < W; ++i) out[l * W + i] = in[i * r.length + l];
            }
          }
        },
        32);
    // rows in no run
    std::vector<std::int32_t> rest;
    std::int32_t next = 0;
    for (auto const& r : runs) {
      for (; next < r.first; ++next) rest.push_back(next);
      next = r.end;
    }
    for (; next < a.rows; ++next) rest.push_back(next);
    std::vector<std::int64_t> rest_ptr{0};
    std::vector<std::int32_t> rest_col;
    std::vector<T> rest_val;
    for (auto const i : rest) {
      for (auto e = ptr[std::size_t(i)]; e < ptr[std::size_t(i) + 1]; ++e) {
        rest_col.push_back(col[std::size_t(e)]);
        rest_val.push_back(val[std::size_t(e)]);
      }
      rest_ptr.push_back(std::int64_t(rest_col.size()));
    }
    p.storage_ = Product::Storage::row_pattern;
    p.listed_rows_ = std::int32_t(rest.size());
    p.row_ids_ = Array::of(std::span<std::int32_t const>(rest));
    p.offsets_ = Array::of(std::span<std::int64_t const>(rest_ptr));
    p.columns_ = Array::of(std::span<std::int32_t const>(rest_col));
    p.values_ = Array::of(std::span<T const>(rest_val));
    p.runs_ = Array::of(std::span<PatternRun const>(runs));
    p.run_count_ = std::int32_t(runs.size());
    length_runs(p, p.offsets_.as<std::int64_t>(), p.listed_rows_);
  }
};

Product::Product(Csr const& a, Storage wanted) : dtype_(a.dtype), rows_(a.rows), cols_(a.cols), nnz_(a.nnz()) {
  if (wanted != Storage::csr && !is_complex(a.dtype) && a.rows > 0) {
    std::int64_t covered = 0;
    auto runs = ProductBuilder::pattern_runs(a, a.dtype == Dtype::float32 ? 16 : 8, covered);
    if (covered > 0 && (wanted == Storage::row_pattern || covered >= nnz_ * 3 / 4)) {
      if (a.dtype == Dtype::float32) ProductBuilder::fill_pattern<float>(*this, a, std::move(runs));
      else ProductBuilder::fill_pattern<double>(*this, a, std::move(runs));
      return;
    }
  }
  if (wanted == Storage::sorted_rows ||
      (wanted == Storage::automatic && (ProductBuilder::irregular(a.offsets.as<std::int64_t>(), a.rows) || ProductBuilder::scattered(a)))) {
    ProductBuilder::sort_by_length(*this, a, {});
    return;
  }
  offsets_ = a.offsets;
  columns_ = a.columns;
  values_ = a.values;
  listed_rows_ = a.rows;
  ProductBuilder::length_runs(*this, offsets_.as<std::int64_t>(), listed_rows_);
}

Product Product::coupling(Csr const& a) {
  Product p;
  p.coupling_ = true;
  p.dtype_ = a.dtype;
  p.rows_ = a.rows;
  p.cols_ = a.cols;
  p.nnz_ = a.nnz();
  auto const ptr = a.row_offsets();
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> offsets{0};
  for (std::int32_t i = 0; i < a.rows; ++i)
    if (ptr[std::size_t(i) + 1] > ptr[std::size_t(i)]) {
      ids.push_back(i);
      offsets.push_back(ptr[std::size_t(i) + 1]);
    }
  if (ProductBuilder::irregular(offsets.data(), std::int32_t(ids.size()))) {
    ProductBuilder::sort_by_length(p, a, ids);
    return p;
  }
  p.row_ids_ = Array::of(std::span<std::int32_t const>(ids));
  p.offsets_ = Array::of(std::span<std::int64_t const>(offsets));
  p.columns_ = a.columns;
  p.values_ = a.values;
  p.listed_rows_ = std::int32_t(ids.size());
  ProductBuilder::length_runs(p, p.offsets_.as<std::int64_t>(), p.listed_rows_);
  return p;
}

double Product::bytes(std::int64_t k) const {
  return double(run_columns_.bytes() + run_values_.bytes() + offsets_.bytes() + columns_.bytes() + values_.bytes() + row_ids_.bytes()) +
         double(k) * double(size_of(dtype_)) * double(coupling_ ? 2 * listed_rows_ + cols_ : rows_ + cols_);
}

std::size_t Product::memory_bytes() const {
  return run_columns_.bytes() + run_values_.bytes() + runs_.bytes() + offsets_.bytes() + columns_.bytes() + values_.bytes() +
         row_ids_.bytes() + lengths_.bytes();
}

void Product::run(device::Context const& ctx, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                  Array const& w) const {
  bool const updates = e == Epilogue::add || e == Epilogue::subtract || e == Epilogue::subtract_scaled;
  ASTERISM_ASSERT(updates == coupling_);
  // queued work holds its own handle; at once, the caller's is enough
  auto const held = ctx.runs_inline() ? nullptr : std::make_shared<Product>(*this);
  auto const* self = held ? held.get() : this;
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit(
        ctx,
        [held, self, e, k](device::Queue& q, T const* xv, T* yv, T const* bv, T const* wv) {
          auto const& p = *self;
          if constexpr (!is_complex_v<T>)
            if (p.storage_ == Storage::row_pattern)
              kernel::pattern_product<T>(q, p.runs_.as<PatternRun>(), p.run_count_, p.run_columns_.as<std::int32_t>(),
                                         p.run_values_.as<T>(), e, k, xv, yv, bv, wv);
          kernel::CsrRows<T> const rows{p.offsets_.as<std::int64_t>(),
                                        p.columns_.as<std::int32_t>(),
                                        p.values_.as<T>(),
                                        p.row_ids_.bytes() ? p.row_ids_.as<std::int32_t>() : nullptr,
                                        p.lengths_.as<LengthRun>(),
                                        p.length_runs_,
                                        p.scattered_};
          kernel::csr_product<T>(q, rows, e, k, xv, yv, bv, wv);
        },
        device::read<T>(x), device::ArrayArgument<T>{y, updates ? device::Access::update : device::Access::write}, device::read<T>(b),
        device::read<T>(w));
  });
}

}  // namespace asterism::la
