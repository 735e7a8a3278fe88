#include "asterism/la/formats/spmv.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/cusparse.hpp"
#include "asterism/la/formats/spmv.kernels.hpp"

namespace asterism::la {

using kernel::LengthRun;
using kernel::PatternRun;
using kernel::SliceRun;

struct ProductBuilder {
  static constexpr std::int32_t window = 4096;  // their part of y stays in the first cache

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
    if (rows < 256) return false;
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

  /// The rows in this order as csr; a copy.
  static void list_rows(Product& p, Csr const& a, std::span<std::int32_t const> ids) {
    auto const ptr = a.row_offsets();
    std::vector<std::int64_t> offsets{0};
    for (auto const i : ids) offsets.push_back(offsets.back() + ptr[std::size_t(i) + 1] - ptr[std::size_t(i)]);
    p.listed_rows_ = std::int32_t(ids.size());
    p.row_ids_ = Array::of(ids);
    p.offsets_ = Array::of(std::span<std::int64_t const>(offsets));
    p.columns_ = Array(std::size_t(offsets.back()) * sizeof(std::int32_t));
    p.values_ = Array(std::size_t(offsets.back()) * size_of(a.dtype));
    auto const* const col = a.columns.as<std::int32_t>();
    auto* const to_col = p.columns_.as<std::int32_t>();
    with_dtype(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const* const val = a.values.as<T>();
      auto* const to_val = p.values_.template as<T>();
      for (std::size_t l = 0; l < ids.size(); ++l) {
        auto at = offsets[l];
        for (auto e = ptr[std::size_t(ids[l])]; e < ptr[std::size_t(ids[l]) + 1]; ++e, ++at) to_col[at] = col[e], to_val[at] = val[e];
      }
    });
    length_runs(p, p.offsets_.as<std::int64_t>(), p.listed_rows_);
  }

  /// Rows of equal length within a window in groups of one vector, the rest listed by length; a copy. `ids` names
  /// the rows that count (empty: all).
  static void make_sell(Product& p, Csr const& a, std::span<std::int32_t const> ids) {
    auto const ptr = a.row_offsets();
    auto const n = ids.empty() ? a.rows : std::int32_t(ids.size());
    auto const row = [&](std::int32_t i) { return ids.empty() ? i : ids[std::size_t(i)]; };
    auto const length = [&](std::int32_t i) { return ptr[std::size_t(i) + 1] - ptr[std::size_t(i)]; };
    auto const W = is_complex(a.dtype) ? std::int32_t(1) << 30 : std::int32_t(64 / size_of(a.dtype));  // complex rows are all listed
    p.storage_ = Product::Storage::sell;
    p.scattered_ = scattered(a);
    std::vector<SliceRun> runs;
    std::vector<std::int32_t> grouped, rest, order, left, sorted;
    std::vector<std::pair<std::int64_t, std::int32_t>> neighbours;  // length, first row
    std::vector<std::int64_t> count;
    std::int64_t entries = 0;
    // as many whole groups as these rows of one length make
    auto const add_groups = [&](std::vector<std::int32_t> const& rows, bool consecutive) {
      auto const l = rows.empty() ? 0 : length(rows[0]);
      auto const groups = l > 0 ? std::int32_t(rows.size()) / W : 0;
      if (groups == 0) return std::int64_t(0);
      if (!runs.empty() && runs.back().length == l && runs.back().consecutive == consecutive && runs.back().groups < window)
        runs.back().groups += groups;
      else runs.push_back({std::int32_t(grouped.size()), groups, std::int32_t(l), consecutive, SliceRun::wide, entries, 0});
      auto const used = std::int64_t(groups) * W;
      entries += used * l;
      grouped.insert(grouped.end(), rows.begin(), rows.begin() + used);
      return used;
    };
    for (std::int32_t first = 0; first < n; first += window) {
      auto const last = std::min(n, first + window);
      // consecutive rows of one length in groups as they stand: y is written as a vector. The groups by length, so that
      // the inner loops' ends can be predicted.
      left.clear();
      neighbours.clear();
      for (auto i = first; i < last;) {
        auto j = i + 1;
        while (j < last && length(row(j)) == length(row(i)) && row(j) == row(j - 1) + 1) ++j;
        for (; j - i >= W && length(row(i)) > 0; i += W) neighbours.emplace_back(length(row(i)), row(i));
        for (; i < j; ++i) left.push_back(row(i));
      }
      std::stable_sort(neighbours.begin(), neighbours.end(), [](auto const& x, auto const& y) { return x.first < y.first; });
      for (auto const& [l, start] : neighbours) {
        order.resize(std::size_t(W));
        std::iota(order.begin(), order.end(), start);
        add_groups(order, true);
      }
      // the others by length
      std::int64_t longest = 0;
      for (auto const i : left) longest = std::max(longest, length(i));
      longest = std::min<std::int64_t>(longest, 4 * window);  // longer ones share the last place
      count.assign(std::size_t(longest) + 2, 0);
      auto const key = [&](std::int32_t i) { return std::size_t(std::min(length(i), longest)); };
      for (auto const i : left) ++count[key(i) + 1];
      for (std::size_t l = 1; l < count.size(); ++l) count[l] += count[l - 1];
      sorted.resize(left.size());
      for (auto const i : left) sorted[std::size_t(count[key(i)]++)] = i;
      for (std::size_t i = 0; i < sorted.size();) {
        auto j = i;
        while (j < sorted.size() && length(sorted[j]) == length(sorted[i])) ++j;
        order.assign(sorted.begin() + std::int64_t(i), sorted.begin() + std::int64_t(j));
        auto const used = add_groups(order, false);
        rest.insert(rest.end(), order.begin() + used, order.end());
        i = j;
      }
    }
    list_rows(p, a, rest);
    auto const* const col = a.columns.as<std::int32_t>();
    device::Executor executor;
    if (!p.scattered_)
      device::parallel_ranges(
          executor, std::int64_t(runs.size()),
          [&](std::int64_t begin, std::int64_t end) {
            for (auto r = begin; r < end; ++r) {
              auto& run = runs[std::size_t(r)];
              std::int32_t low = a.cols, high = 0;
              for (std::int32_t i = run.first; i < run.first + run.groups * W; ++i)
                for (auto e = ptr[std::size_t(grouped[std::size_t(i)])], last = e + run.length; e < last; ++e)
                  low = std::min(low, col[e]), high = std::max(high, col[e]);
              if (high - low < 1 << 16) run.base = low;
            }
          },
          32);
    std::int64_t column_bytes = 0;
    for (auto& run : runs) {
      run.column_at = column_bytes;
      column_bytes += std::int64_t(run.groups) * W * run.length * (run.base == SliceRun::wide ? 4 : 2);
    }
    p.slice_runs_ = std::int32_t(runs.size());
    p.slices_ = Array::of(std::span<SliceRun const>(runs));
    p.slice_rows_ = Array::of(std::span<std::int32_t const>(grouped));
    auto const column_end = std::size_t(kernel::ahead) * sizeof(std::int32_t);
    p.slice_columns_ = Array(std::size_t(column_bytes) + column_end);
    p.slice_values_ = Array(std::size_t(entries) * size_of(a.dtype));
    auto* const columns = p.slice_columns_.as<std::byte>();
    std::fill_n(columns + column_bytes, column_end, std::byte(0));
    with_dtype(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const* const val = a.values.as<T>();
      auto* const to_val = p.slice_values_.template as<T>();
      device::parallel_ranges(
          executor, std::int64_t(runs.size()),
          [&](std::int64_t begin, std::int64_t end) {
            for (auto r = begin; r < end; ++r) {
              auto const& run = runs[std::size_t(r)];
              auto const fill = [&](auto* to_col, std::int32_t base) {
                for (std::int32_t i = 0; i < run.groups * W; ++i) {
                  auto const from = ptr[std::size_t(grouped[std::size_t(run.first + i)])];
                  auto const to = std::int64_t(i / W) * W * run.length + i % W;
                  for (std::int32_t e = 0; e < run.length; ++e) {
                    to_col[to + e * W] = std::remove_pointer_t<decltype(to_col)>(col[from + e] - base);
                    to_val[run.entry_at + to + e * W] = val[from + e];
                  }
                }
              };
              if (run.base == SliceRun::wide) fill(reinterpret_cast<std::uint32_t*>(columns + run.column_at), 0);
              else fill(reinterpret_cast<std::uint16_t*>(columns + run.column_at), run.base);
            }
          },
          32);
    });
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
    device::Executor executor;
    device::parallel_ranges(
        executor, std::int64_t(runs.size()),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto n = begin; n < end; ++n) {
            auto& r = runs[std::size_t(n)];
            auto const* const first = val.data() + ptr[std::size_t(r.first)];
            auto i = 1;
            while (i < r.end - r.first && std::memcmp(first, first + std::int64_t(i) * r.length, std::size_t(r.length) * sizeof(T)) == 0)
              ++i;
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
    p.run_columns_ = Array(std::size_t(offsets) * sizeof(std::int32_t));
    p.run_values_ = Array(std::size_t(values) * sizeof(T));
    device::parallel_ranges(
        executor, std::int64_t(runs.size()),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto n = begin; n < end; ++n) {
            auto const& r = runs[std::size_t(n)];
            for (std::int32_t l = 0; l < r.length; ++l)
              p.run_columns_.as<std::int32_t>()[r.offset_at + l] = col[std::size_t(ptr[std::size_t(r.first)] + l)] - r.first;
            auto* out = p.run_values_.as<T>() + r.value_at;
            if (r.uniform) {
              std::copy_n(val.data() + ptr[std::size_t(r.first)], r.length, out);
              continue;
            }
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
    p.storage_ = Product::Storage::row_pattern;
    list_rows(p, a, rest);
    p.runs_ = Array::of(std::span<PatternRun const>(runs));
    p.run_count_ = std::int32_t(runs.size());
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
  bool const in_cache = !is_complex(a.dtype) && a.rows >= 256 && a.values.bytes() < (std::size_t(16) << 20);
  if (wanted == Storage::sell ||
      (wanted == Storage::automatic &&
       (in_cache || ProductBuilder::irregular(a.offsets.as<std::int64_t>(), a.rows) || ProductBuilder::scattered(a)))) {
    ProductBuilder::make_sell(*this, a, {});
    return;
  }
  offsets_ = a.offsets;
  columns_ = a.columns;
  values_ = a.values;
  listed_rows_ = a.rows;
  ProductBuilder::length_runs(*this, offsets_.as<std::int64_t>(), listed_rows_);
}

Product Product::coupling(Csr const& a, Storage wanted) {
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
  if (wanted != Storage::csr && ProductBuilder::irregular(offsets.data(), std::int32_t(ids.size()))) {
    ProductBuilder::make_sell(p, a, ids);
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

Product Product::with_values(Dtype dtype, Array values) const {
  ASTERISM_ASSERT(storage_ == Storage::csr && slice_runs_ == 0);
  Product p = *this;
  p.dtype_ = dtype;
  p.values_ = std::move(values);
  p.cusparse_.reset();
  return p;
}

double Product::bytes(std::int64_t k) const {
  return double(slices_.bytes() + slice_rows_.bytes() + slice_columns_.bytes() + slice_values_.bytes() + run_columns_.bytes() +
                run_values_.bytes() + offsets_.bytes() + columns_.bytes() + values_.bytes() + row_ids_.bytes()) +
         double(k) * double(size_of(dtype_)) *
             (coupling_ ? 2 * double(listed_rows_) + 2 * double(slice_rows_.bytes() / sizeof(std::int32_t)) + double(cols_)
                        : double(rows_) + double(cols_));
}

std::size_t Product::memory_bytes() const {
  return slices_.bytes() + slice_rows_.bytes() + slice_columns_.bytes() + slice_values_.bytes() + run_columns_.bytes() +
         run_values_.bytes() + runs_.bytes() + offsets_.bytes() + columns_.bytes() + values_.bytes() + row_ids_.bytes() + lengths_.bytes();
}

namespace {

/// Where a GPU's thread finds its row's run: the run of every tile_rows-th row.
template <class Run, class End>
Array run_at_tiles(Array const& runs, std::int32_t count, std::int32_t rows, End const& end) {
  auto const* const r = runs.as<Run>();
  std::vector<std::int32_t> at(std::size_t((rows + kernel::tile_rows - 1) / kernel::tile_rows));
  std::int32_t run = 0;
  for (std::size_t t = 0; t < at.size(); ++t) {
    while (run < count && end(r[run]) <= std::int32_t(t) * kernel::tile_rows) ++run;
    at[t] = run;
  }
  return Array::of(std::span<std::int32_t const>(at));
}

}  // namespace

void Product::prepare_for_gpu() const {
  if (run_count_ > 0 && !run_tiles_)
    run_tiles_ = run_at_tiles<PatternRun>(runs_, run_count_, rows_, [](PatternRun const& r) { return r.end; });
  auto const lanes = std::int32_t(64 / size_of(dtype_));
  if (slice_runs_ > 0 && !slice_tiles_)
    slice_tiles_ = run_at_tiles<SliceRun>(slices_, slice_runs_, std::int32_t(slice_rows_.bytes() / sizeof(std::int32_t)),
                                          [=](SliceRun const& r) { return r.first + r.groups * lanes; });
}

template <class T>
kernel::ProductRows<T> Product::rows(device::Memory m) const {
  kernel::ProductRows<T> out{};
  if (storage_ == Storage::row_pattern)
    out.pattern = {runs_.as<PatternRun>(m), run_count_, run_columns_.as<std::int32_t>(m),
                   run_values_.as<T>(m),    rows_,      run_tiles_.as<std::int32_t>(m)};
  if (slice_runs_ > 0)
    out.sell = {slices_.as<SliceRun>(m),
                slice_runs_,
                slice_rows_.as<std::int32_t>(m),
                slice_columns_.as<std::byte>(m),
                slice_values_.as<T>(m),
                scattered_,
                std::int32_t(slice_rows_.bytes() / sizeof(std::int32_t)),
                slice_tiles_.as<std::int32_t>(m)};
  out.csr = {offsets_.as<std::int64_t>(m),
             columns_.as<std::int32_t>(m),
             values_.as<T>(m),
             row_ids_.bytes() ? row_ids_.as<std::int32_t>(m) : nullptr,
             lengths_.as<LengthRun>(m),
             length_runs_,
             listed_rows_,
             std::int64_t(columns_.bytes() / sizeof(std::int32_t))};
  return out;
}

}  // namespace asterism::la

namespace asterism::device::detail {
template <class T>
struct ProductArgument {
  asterism::la::Product const& product;
};
/// Resolves to ProductRows<T>.
template <class T>
struct Argument<ProductArgument<T>> {
  // queued work holds its own handle; at once, the caller's is enough
  struct Held {
    std::shared_ptr<asterism::la::Product const> product;
    Memory memory;
  };
  static bool ready(ProductArgument<T> const&) { return true; }
  // nobody else's work writes to these arrays, but for an assembly on a queue
  static void settle(ProductArgument<T> const& a) { a.product.values().settle(Access::read, "a matrix's values"); }
  static Held hold(ProductArgument<T> const& a, Queue const&, Memory m) {
    if (m == Memory::gpu) a.product.prepare_for_gpu();
    return {std::make_shared<asterism::la::Product>(a.product), m};
  }
  static void collect(Held const& h, std::vector<Intent>& v) {
    if (h.memory == Memory::host) {
      if (auto const& values = h.product->values(); values.buffer() && values.buffer()->involved()) values.intend(Access::read, v);
      return;
    }
    for (auto const* const a : h.product->arrays())
      if (a->bytes() > 0) a->intend(Access::read, v);
  }
  static asterism::la::kernel::ProductRows<T> resolve(ProductArgument<T> const& a, Memory m) { return a.product.template rows<T>(m); }
  static asterism::la::kernel::ProductRows<T> resolve(Held const& h, Memory m) { return h.product->template rows<T>(m); }
};
}  // namespace asterism::device::detail

namespace asterism::la {

std::shared_ptr<CusparseProduct> const& Product::cusparse() const {
  if (auto const choice = gpu_product(); !cusparse_ || cusparse_->choice != choice)
    cusparse_ = {choice, storage_ != Storage::csr || coupling_
                             ? nullptr
                             : CusparseProduct::of(dtype_, rows_, cols_, {offsets_.as<std::int64_t>(), std::size_t(rows_) + 1})};
  return cusparse_->product;
}

void Product::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                  Array const& w) const {
  bool const updates = e == Epilogue::add || e == Epilogue::subtract || e == Epilogue::subtract_scaled;
  ASTERISM_ASSERT(updates == coupling_);
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (queue.memory() == device::Memory::gpu && e == Epilogue::assign && k == 1 && cusparse())
      return CusparseProduct::submit<T>(cusparse(), queue, device::detail::ProductArgument<T>{*this}, x, y);
    device::submit(queue, kernel::product<T>, device::detail::ProductArgument<T>{*this}, e, k, device::read<T>(x),
                   device::ArrayArgument<T>{y, updates ? device::Access::update : device::Access::write}, device::read<T>(b),
                   device::read<T>(w));
  });
}

}  // namespace asterism::la
