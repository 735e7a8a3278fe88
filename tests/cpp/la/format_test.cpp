#include "asterism/la/formats/format.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "asterism/device/condition.hpp"
#include "asterism/la/formats/bcsr/bcsr_format.hpp"
#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/formats/csr/cusparse.hpp"
#include "asterism/la/formats/sell/sell_format.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/gpu.hpp"
#include "harness/repeats.hpp"
#include "harness/world.hpp"
#include "la/hashed_csr.hpp"

using namespace asterism;
using namespace asterism::la;
using test::hashed;

namespace {

/// A matrix of that pattern whose entries are all 0.5.
Csr halves(std::int32_t rows, std::int32_t cols, std::vector<std::int64_t> const& ptr, std::vector<std::int32_t> const& col) {
  Csr a(Dtype::float64, rows, cols, std::int64_t(col.size()));
  std::copy(ptr.begin(), ptr.end(), a.row_offsets().begin());
  std::copy(col.begin(), col.end(), a.column_indices().begin());
  std::fill(a.entries<double>().begin(), a.entries<double>().end(), 0.5);
  return a;
}

using Stored = std::shared_ptr<SparseFormat const>;

Stored in_csr(Csr const& a) { return std::make_shared<CsrFormat const>(a); }

/// The block in each format that can hold it, by the table.
std::vector<Stored> in_all_formats(Csr const& a, Writes writes) {
  std::vector<Stored> out;
  for (auto const& format : formats())
    if (auto made = format.make(a, writes, FormatChoice::wherever_possible)) {
      EXPECT_EQ(made->name(), format.name);
      out.push_back(std::move(made));
    }
  return out;
}

}  // namespace

TEST(SparseFormat, AllOfTheTableAgree) {
  // rows with common offsets, broken by some irregular ones, for lengths around the SIMD width; values of their own, all the same,
  // or the same but in one row
  enum Values { own, same, same_but_one };
  test::Thinned several;
  std::vector<std::vector<std::int32_t>> const stencils = {
      {-9, -1, 0, 1, 12}, {-1, 0, 1}, {-30, -6, -1, 0, 1, 6, 30}, {-11, -10, -9, -1, 0, 1, 9, 10, 11}, {0, 1}, {-3, 0, 2, 4, 7, 11}};
  for (std::int32_t n : {1, 7, 8, 9, 40, 257, 5000})
    for (int const hole : {0, 5, 31})
      for (auto const& stencil : stencils)
        for (auto const d : {Dtype::float64, Dtype::float32}) {
          if (test::sanitized && n == 5000 && hole != 5) continue;
          auto const layout = Layout::from_offsets(comm::Communicator(), {0, n});
          std::vector<Vector> results;
          for (auto const values : {own, same, same_but_one}) {
            std::vector<std::int64_t> ptr{0};
            std::vector<std::int32_t> col;
            std::vector<double> val;
            for (std::int32_t i = 0; i < n; ++i) {
              for (auto const o : stencil)
                if (i + o >= 0 && i + o < n && !(hole && i % hole == 0 && o == 1)) {
                  col.push_back(i + o);
                  val.push_back(values == own || (values == same_but_one && i == 20) ? 0.1 * i + o : 0.3 + o);
                }
              ptr.push_back(std::int64_t(col.size()));
            }
            Csr a(Dtype::float64, n, n, std::int64_t(col.size()));
            std::copy(ptr.begin(), ptr.end(), a.row_offsets().begin());
            std::copy(col.begin(), col.end(), a.column_indices().begin());
            std::copy(val.begin(), val.end(), a.entries<double>().begin());
            auto const m = converted(a, d);
            auto const others = in_all_formats(m, Writes::all_rows);
            auto const plain = in_csr(m);
            if (values == same && hole == 0 && n == 5000) {
              ASSERT_EQ(others.front()->name(), "row_pattern");
              ASSERT_LT(others.front()->memory_bytes(), plain->memory_bytes() / 10) << stencil.size();
            }
            for (std::int64_t k : {1, 3, 8, 13})
              for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth}) {
                if (k > 1 && several.skips()) continue;
                Vector x(layout, d, k), b(layout, d, k), w(layout, d), y(layout, d, k), z(layout, d, k);
                fill_hashed(x, 1);
                fill_hashed(b, 2);
                fill_hashed(w, 3);
                plain->run(device::Queue::host(), e, k, x.data(), y.data(), b.data(), w.data());
                for (auto const& other : others) {
                  other->run(device::Queue::host(), e, k, x.data(), z.data(), b.data(), w.data());
                  if (other == others.front() && k == 1 && e == Epilogue::assign) {
                    results.push_back(z.like());
                    copy(z, results.back());
                  }
                  axpy(-1.0, y, z);
                  ASSERT_LE(norm(z).real(), 10 * epsilon_of(d) * double(n) * norm(y).real() + 1e-30)
                      << other->name() << " " << n << " " << hole << " " << int(e);
                }
              }
          }
          // where values stand makes no difference: the bits of all rows but the one
          with_dtype(d, [&](auto tag) {
            using T = typename decltype(tag)::type;
            for (std::int32_t i = 0; i < n; ++i)
              if (i != 20) {
                ASSERT_EQ(results[1].host<T>()[std::size_t(i)], results[2].host<T>()[std::size_t(i)]) << n << " row " << i;
              }
          });
        }
}

TEST(SparseFormat, RowsAndColumnsWithSteps) {
  // interpolation to a grid (rows `down` apart have neighbouring columns) and its reverse (columns `across` apart), on the emulated GPU too
  std::vector<Queue> queues{Queue::host()};
  if (on_the_emulated_gpu() && world().size() == 1) queues.push_back(Queue::gpu("cuda"));
  comm::Communicator const self;
  test::Thinned several;
  for (auto const& [down, across] : {std::array{2, 1}, {3, 1}, {4, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 1}})
    for (std::int32_t const count : {1, 15, 16, 17, 40, 300})
      for (int const hole : {0, 23}) {
        if (test::sanitized && (count == 15 || count == 16 || count == 40)) continue;
        std::int32_t const rows = count * down, columns = count * across + 9;
        std::vector<std::int64_t> ptr{0};
        std::vector<std::int32_t> col;
        for (std::int32_t i = 0; i < rows; ++i) {
          for (std::int32_t o = 0; o < (down > 1 ? 1 + i % down : 5); ++o)
            if (!(hole && i % hole == 5 && o == 1)) col.push_back(i / down * across + (o == 4 ? 7 : o));
          if (hole && i == 11) col.resize(std::size_t(ptr.back()));  // an empty row
          ptr.push_back(std::int64_t(col.size()));
        }
        for (int const kind : {0, 1, 2})  // the last one: held as bfloat16
          for (bool const same : {false, true}) {
            auto const d = kind == 0 ? Dtype::float64 : Dtype::float32;
            Csr a = hashed(d, rows, columns, ptr, col, same);
            auto const stored = kind == 2 ? rounded_to_bfloat16(a) : a;
            if (kind == 2) a = stored, a.bfloat16 = false;
            auto const row_layout = Layout::from_offsets(self, {0, rows}), column_layout = Layout::from_offsets(self, {0, columns});
            for (auto const writes : {Writes::all_rows, Writes::rows_with_entries}) {
              if (count == 300 && !hole) EXPECT_EQ(choose_format(stored, writes)->name(), "row_pattern");
              Stored const plain = std::make_shared<CsrFormat const>(a, writes);
              for (auto const& held : in_all_formats(stored, writes))
                for (auto const& queue : queues)
                  for (std::int64_t const k : {1, 3, 4, 9})
                    for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth, Epilogue::add, Epilogue::subtract,
                                         Epilogue::subtract_scaled}) {
                      if (written_by(e) != writes || (e == Epilogue::smooth && columns < rows) || (k > 1 && several.skips())) continue;
                      Vector x(column_layout, d, k, queue), b(row_layout, d, k, queue), w(row_layout, d, 1, queue),
                          y(row_layout, d, k, queue);
                      auto z = y.like();
                      fill_hashed(x, 1), fill_hashed(b, 2), fill_hashed(w, 3), fill(y, 1.0), fill(z, 1.0);
                      plain->run(queue, e, k, x.data(), y.data(), b.data(), w.data());
                      held->run(queue, e, k, x.data(), z.data(), b.data(), w.data());
                      auto const size = norm(y).real();
                      axpy(-1.0, y, z);
                      ASSERT_LE(norm(z).real(), 10 * epsilon_of(d) * size)
                          << held->name() << " " << down << " to " << across << " " << count << " " << int(e) << " " << k;
                    }
            }
          }
      }
}

// Of float64 rows, without a float32 copy of them: for products in float32.
TEST(SparseFormat, AreMadeForAnotherPrecision) {
  comm::Communicator const self;
  for (std::int32_t const count : {1, 9, 16, 40, 3000})
    for (int const hole : {0, 7, 300})
      for (double const slope : {0.0, 1e-12, 1e-3}) {
        std::int32_t const rows = 2 * count, columns = count + 9;  // in runs of every second row, and of each
        std::vector<std::int64_t> ptr{0};
        std::vector<std::int32_t> col;
        for (std::int32_t i = 0; i < rows; ++i) {
          std::int32_t const first = i < count ? i / 2 : i - count;
          for (std::int32_t o = 0; o < (i < count ? 1 + i % 2 : 4); ++o)
            if (!(hole && i % hole == 5 && o == 0)) col.push_back(first + 2 * o);
          ptr.push_back(std::int64_t(col.size()));
        }
        Csr const a = halves(rows, columns, ptr, col);
        for (std::int64_t e = 0; e < a.nnz(); ++e) a.entries<double>()[std::size_t(e)] += slope * double(e);
        auto const narrow = converted(a, Dtype::float32);
        auto const row_layout = Layout::from_offsets(self, {0, rows}), column_layout = Layout::from_offsets(self, {0, columns});
        for (auto const writes : {Writes::all_rows, Writes::rows_with_entries}) {
          Stored const plain = std::make_shared<CsrFormat const>(narrow, writes), wide = choose_format(a, writes);
          if (count == 3000 && hole != 7) EXPECT_EQ(wide->name(), "row_pattern");
          for (auto const& held :
               {choose_format(a, writes, Dtype::float32, nullptr), choose_format(a, writes, Dtype::float32, wide.get())}) {
            EXPECT_EQ(held->dtype(), Dtype::float32);
            EXPECT_EQ(held->nnz(), a.nnz());
            if (count == 3000 && hole != 7) EXPECT_EQ(held->name(), "row_pattern");
            // rounding makes equal values of those that differ by less
            if (count == 3000 && hole == 0 && slope == 1e-12) EXPECT_LT(held->memory_bytes(), std::size_t(a.nnz()) * 3);
            auto const e = writes == Writes::all_rows ? Epilogue::residual : Epilogue::add;
            Vector x(column_layout, Dtype::float32), b(row_layout, Dtype::float32), y(row_layout, Dtype::float32);
            auto z = y.like();
            fill_hashed(x, 1), fill_hashed(b, 2), fill(y, 1.0), fill(z, 1.0);
            plain->run(Queue::host(), e, 1, x.data(), y.data(), b.data(), {});
            held->run(Queue::host(), e, 1, x.data(), z.data(), b.data(), {});
            auto const size = norm(y).real();
            axpy(-1.0, y, z);
            ASSERT_LE(norm(z).real(), 10 * epsilon_of(Dtype::float32) * size)
                << held->name() << " " << count << " " << hole << " " << slope;
          }
        }
      }
  Csr complex(Dtype::complex128, 40, 40, 40);
  std::iota(complex.row_offsets().begin(), complex.row_offsets().end(), 0);
  std::iota(complex.column_indices().begin(), complex.column_indices().end(), 0);
  std::fill(complex.entries<Complex<double>>().begin(), complex.entries<Complex<double>>().end(), Complex<double>(2, 1));
  EXPECT_EQ(choose_format(complex, Writes::all_rows, Dtype::complex64, nullptr)->dtype(), Dtype::complex64);
}

TEST(SparseFormat, BlocksAreFoundAndMultiplied) {
  // blocks of all sizes that there are, block rows of changing length and empty ones, an odd number of them; the emulated GPU's kernels too
  std::vector<Queue> queues{Queue::host()};
  if (on_the_emulated_gpu() && world().size() == 1) queues.push_back(Queue::gpu("cuda"));
  comm::Communicator const self;
  test::Thinned several;
  for (std::int32_t const height : {2, 3, 4, 6})
    for (std::int32_t const width : {2, 3, 4, 6})
      for (std::int32_t const block_rows : {1, 9, 101}) {
        std::int32_t const block_columns = 2 * block_rows + 7, rows = block_rows * height, columns = block_columns * width;
        std::vector<std::int64_t> ptr{0};
        std::vector<std::int32_t> col;
        for (std::int32_t i = 0; i < rows; ++i) {
          auto const blocks = block_rows == 1 ? 2 : i / height % 7;
          for (std::int32_t g = 0; g < blocks; ++g)
            for (std::int32_t q = 0; q < width; ++q) col.push_back((i / height % block_columns + 2 * g) % block_columns * width + q);
          std::sort(col.begin() + ptr.back(), col.end());
          ptr.push_back(std::int64_t(col.size()));
        }
        for (int const kind : {0, 1, 2, 3, 4}) {  // the last one: held as bfloat16
          auto const d = std::array{Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128, Dtype::float32}[std::size_t(kind)];
          Csr a = hashed(d, rows, columns, ptr, col);
          auto const stored = kind == 4 ? rounded_to_bfloat16(a) : a;
          if (kind == 4) a = stored, a.bfloat16 = false;
          auto const shape = BlockShape::of(a);
          EXPECT_EQ(shape.height, height);
          EXPECT_EQ(shape.width, width);
          if (!is_complex(d)) EXPECT_EQ(choose_format(a)->name(), "bcsr");
          auto const row_layout = Layout::from_offsets(self, {0, rows}), column_layout = Layout::from_offsets(self, {0, columns});
          for (auto const writes : {Writes::all_rows, Writes::rows_with_entries}) {
            Stored const held = std::make_shared<BcsrFormat const>(stored, shape, writes),
                         plain = std::make_shared<CsrFormat const>(a, writes);
            if (block_rows > 100) EXPECT_LT(held->bytes(), plain->bytes());
            for (auto const& queue : queues)
              for (std::int64_t const k : {1, 3, 13})
                for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth, Epilogue::add, Epilogue::subtract,
                                     Epilogue::subtract_scaled}) {
                  if (written_by(e) != writes || (e == Epilogue::smooth && columns < rows) || (k > 1 && several.skips())) continue;
                  Vector x(column_layout, d, k, queue), b(row_layout, d, k, queue), w(row_layout, d, 1, queue), y(row_layout, d, k, queue);
                  auto z = y.like();
                  fill_hashed(x, 1), fill_hashed(b, 2), fill_hashed(w, 3), fill(y, 1.0), fill(z, 1.0);
                  plain->run(queue, e, k, x.data(), y.data(), b.data(), w.data());
                  held->run(queue, e, k, x.data(), z.data(), b.data(), w.data());
                  auto const size = norm(y).real();
                  axpy(-1.0, y, z);
                  ASSERT_LE(norm(z).real(), 10 * epsilon_of(d) * size) << height << " x " << width << " " << block_rows << " " << int(e);
                }
          }
        }
      }
}

TEST(SparseFormat, WhatIsNoWholeBlockIsNone) {
  auto const shape = [](std::vector<std::int64_t> const& ptr, std::vector<std::int32_t> const& col) {
    auto const found = BlockShape::of(halves(std::int32_t(ptr.size()) - 1, 12, ptr, col));
    return std::pair(found.height, found.width);
  };
  EXPECT_EQ(shape({0, 2, 4}, {0, 1, 0, 1}), std::pair(2, 2));
  EXPECT_EQ(shape({0, 3, 6}, {0, 1, 2, 0, 1, 2}), std::pair(2, 3));
  EXPECT_EQ(shape({0, 4, 8}, {0, 1, 6, 7, 0, 1, 6, 7}), std::pair(2, 2));
  EXPECT_EQ(shape({0, 2, 4}, {1, 2, 1, 2}), std::pair(1, 1));  // begins at no multiple
  EXPECT_EQ(shape({0, 2, 4}, {0, 1, 0, 2}), std::pair(1, 1));  // rows differ
  EXPECT_EQ(shape({0, 2, 3}, {0, 1, 0}), std::pair(1, 1));     // in length
  EXPECT_EQ(shape({0, 2, 4, 6}, {0, 1, 0, 1, 0, 1}), std::pair(3, 2));
  EXPECT_EQ(shape({0, 2, 4, 6, 6, 6}, {0, 1, 0, 1, 0, 1}), std::pair(1, 1));  // five rows
  EXPECT_EQ(shape({0, 0, 0}, {}), std::pair(1, 1));
}

TEST(SparseFormat, InfinitiesStayInTheirRowOfABlock) {
  // rows of a block are read as vectors that may reach into what follows
  for (std::int32_t const height : {2, 3, 4, 6}) {
    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> col;
    for (std::int32_t i = 0; i < 2 * height; ++i) {
      for (std::int32_t q = 0; q < 3; ++q) col.push_back(i / height * 3 + q);
      ptr.push_back(std::int64_t(col.size()));
    }
    auto a = halves(2 * height, 6, ptr, col);
    auto const row = height;  // the first one of the second block row
    a.entries<double>()[std::size_t(3 * row)] = std::numeric_limits<double>::infinity();
    comm::Communicator const self;
    Vector x(Layout::from_offsets(self, {0, 6}), Dtype::float64), y(Layout::from_offsets(self, {0, 2 * height}), Dtype::float64);
    fill(x, 1.0);
    auto const stored = choose_format(a);
    ASSERT_EQ(stored->name(), "bcsr");
    stored->run(device::Queue::host(), Epilogue::assign, 1, x.data(), y.data());
    for (std::int32_t i = 0; i < 2 * height; ++i)
      EXPECT_EQ(y.host<double>()[std::size_t(i)], i == row ? std::numeric_limits<double>::infinity() : 1.5) << height << " " << i;
  }
}

TEST(SparseFormat, RowsOfChangingLengthAreSliced) {
  // lengths 0, 1, 2, ... as a hash has them; every row of y is defined or updated once, in all dtypes
  std::int32_t const n = 10007;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  for (std::int32_t i = 0; i < n; ++i) {
    auto const length = std::int32_t((std::uint32_t(i) * 2654435761u) >> 28) * (i % 97 == 0 ? 7 : 1);
    for (std::int32_t l = 0; l < length; ++l) col.push_back((i + l * 31) % n);
    std::sort(col.begin() + ptr.back(), col.end());
    ptr.push_back(std::int64_t(col.size()));
  }
  auto const layout = Layout::from_offsets(comm::Communicator(), {0, n});
  for (auto const d : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128}) {
    auto const a = hashed(d, n, n, ptr, col);
    ASSERT_EQ(choose_format(a)->name(), "sell");
    ASSERT_EQ(choose_format(a, Writes::rows_with_entries)->name(), "sell");
    auto const plain = in_csr(a);
    for (std::int64_t k : {1, 2, 13}) {
      Vector x(layout, d, k), y(layout, d, k), z(layout, d, k), u(layout, d, k);
      fill_hashed(x, 1);
      plain->run(device::Queue::host(), Epilogue::assign, k, x.data(), y.data());
      auto const size = norm(y).real();
      for (auto const& format : in_all_formats(a, Writes::all_rows)) {
        format->run(device::Queue::host(), Epilogue::assign, k, x.data(), z.data());
        axpy(-1.0, y, z);
        EXPECT_LE(norm(z).real(), 10 * epsilon_of(d) * size) << format->name();
      }
      for (auto const& format : in_all_formats(a, Writes::rows_with_entries)) {
        fill(u, 1.0);
        format->run(device::Queue::host(), Epilogue::add, k, x.data(), u.data());
        fill(z, 1.0);
        axpy(1.0, y, z);
        axpy(-1.0, u, z);
        EXPECT_LE(norm(z).real(), 10 * epsilon_of(d) * size) << format->name();
      }
    }
  }
}

TEST(SparseFormat, ColumnsAreShortWhereTheyLieTogether) {
  // runs of rows whose columns are at most 65535 apart (16 bits from the first on), one more (32 bits), and far from 0
  std::int32_t const window = 4096, n = 4 * window, m = 300000, lengths[] = {1, 3, 9, 12};
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  for (std::int32_t i = 0; i < n; ++i) {
    auto const part = i / window, first = part == 2 ? m - 65536 : 100 * part, apart = part == 1 ? 65536 : 65535;
    auto const length = lengths[std::uint32_t(i) * 2654435761u >> 30];
    for (std::int32_t l = 0; l < length; ++l) col.push_back(first + (i * 7 + l * 5003) % 65536);
    std::sort(col.begin() + ptr.back(), col.end());
    if (i % 5 == 0) col[std::size_t(ptr.back())] = first;
    if (i % 5 == 1 || length == 1) col.back() = first + apart;
    ptr.push_back(std::int64_t(col.size()));
  }
  comm::Communicator const self;
  auto const rows = Layout::from_offsets(self, {0, n}), columns = Layout::from_offsets(self, {0, m});
  auto const a = halves(n, m, ptr, col);
  for (auto const d : {Dtype::float32, Dtype::float64}) {
    auto const typed = converted(a, d);
    auto const plain = in_csr(typed);
    Stored const sliced = std::make_shared<SellFormat const>(typed, Writes::all_rows);
    auto const entries = double(typed.nnz());
    // three quarters of the columns take 2 bytes less, each row a number instead of an offset
    EXPECT_NEAR(plain->bytes() - sliced->bytes(), 1.5 * entries + 4.0 * n, 0.1 * entries);
    for (std::int64_t k : {1, 2}) {
      Vector x(columns, d, k), y(rows, d, k), z(rows, d, k);
      fill_hashed(x, 1);
      plain->run(device::Queue::host(), Epilogue::assign, k, x.data(), y.data());
      sliced->run(device::Queue::host(), Epilogue::assign, k, x.data(), z.data());
      auto const size = norm(y).real();
      axpy(-1.0, y, z);
      EXPECT_LE(norm(z).real(), 10 * epsilon_of(d) * size);
    }
  }
}

TEST(SparseFormat, ScatteredColumnsAreAskedForAhead) {
  // x larger than the second cache, columns at random, some rows empty: the last rows ask beyond the end
  std::int32_t const n = 80000, m = 300000;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t l = 0; l < (i % 11 ? 5 : 0); ++l)
      col.push_back(std::int32_t(((std::uint64_t(i) * 5 + std::uint64_t(l)) * 0x9e3779b97f4a7c15ull >> 33) % std::uint64_t(m)));
    std::sort(col.begin() + ptr.back(), col.end());
    ptr.push_back(std::int64_t(col.size()));
  }
  comm::Communicator const self;
  auto const rows = Layout::from_offsets(self, {0, n}), columns = Layout::from_offsets(self, {0, m});
  auto const a = halves(n, m, ptr, col);
  auto const plain = in_csr(a);
  auto const chosen = choose_format(a);
  EXPECT_EQ(chosen->name(), "sell");
  Vector x(columns, Dtype::float64), y(rows, Dtype::float64), z(rows, Dtype::float64);
  fill_hashed(x, 1);
  plain->run(device::Queue::host(), Epilogue::assign, 1, x.data(), y.data());
  chosen->run(device::Queue::host(), Epilogue::assign, 1, x.data(), z.data());
  axpy(-1.0, y, z);
  EXPECT_EQ(norm(z).real(), 0);
}

TEST(SparseFormat, Bfloat16EntriesAreComputedWithInFloat32) {
  // all formats against csr of the same numbers in float32: grids with rows alike and not, and rows of changing length; the emulated
  // GPU's kernels too
  auto const* const plugin = std::getenv("ASTERISM_GPU_PLUGIN");
  std::vector<Queue> queues{Queue::host()};
  if (plugin && world().size() == 1) queues.push_back(Queue::gpu("cuda"));
  comm::Communicator const self;
  enum Kind { grid, same, changing };
  test::Thinned several;
  for (std::int32_t const n : {0, 1, 2, 7, 17, 33, 257, 5003})
    for (auto const kind : {grid, same, changing}) {
      std::vector<std::int64_t> ptr{0};
      std::vector<std::int32_t> col;
      for (std::int32_t i = 0; i < n; ++i) {
        if (kind == changing) {
          auto const length = std::int32_t((std::uint32_t(i) * 2654435761u) >> 27);
          for (std::int32_t l = 0; l < std::min(length, n); ++l) col.push_back((i + l) % n);
          std::sort(col.begin() + ptr.back(), col.end());
        } else {
          for (auto const o : {-13, -1, 0, 1, 13})
            if (i + o >= 0 && i + o < n) col.push_back(i + o);
        }
        ptr.push_back(std::int64_t(col.size()));
      }
      auto const d = Dtype::float32;
      auto a = converted(halves(n, n, ptr, col), d);
      for (std::size_t e = 0; e < col.size() && kind != same; ++e)
        a.entries<float>()[e] = 0.1f + float((e * 2654435761u >> 7) % 1000) / 300;
      auto const b16 = rounded_to_bfloat16(a);
      auto plain = b16;
      plain.bfloat16 = false;
      for (auto const writes : {Writes::all_rows, Writes::rows_with_entries}) {
        auto const reference = std::make_shared<CsrFormat const>(plain, writes);
        for (auto const& format : in_all_formats(b16, writes)) {
          if (n == 5003 && kind != same) EXPECT_LT(format->memory_bytes(), reference->memory_bytes()) << format->name();
          for (auto const& queue : queues)
            for (std::int64_t const k : {1, 3, 13}) {
              auto const layout = Layout::from_offsets(self, {0, n});
              for (auto const e :
                   {Epilogue::assign, Epilogue::residual, Epilogue::smooth, Epilogue::add, Epilogue::subtract, Epilogue::subtract_scaled}) {
                if (written_by(e) != writes || (k > 1 && several.skips())) continue;
                Vector x(layout, d, k, queue), b(layout, d, k, queue), w(layout, d, 1, queue), y(layout, d, k, queue), z = y.like();
                fill_hashed(x, 1), fill_hashed(b, 2), fill_hashed(w, 3), fill(y, 1.0), fill(z, 1.0);
                reference->run(queue, e, k, x.data(), y.data(), b.data(), w.data());
                format->run(queue, e, k, x.data(), z.data(), b.data(), w.data());
                auto const size = norm(y).real();
                axpy(-1.0, y, z);
                ASSERT_LE(norm(z).real(), 20 * epsilon_of(d) * size + 1e-30) << format->name() << " " << n << " " << kind << " " << int(e);
              }
            }
        }
      }
    }
}

TEST(SparseFormat, AConditionHoldsForCusparseToo) {
  if (!on_the_emulated_gpu() || world().size() > 1) GTEST_SKIP() << "on the emulated GPU alone";
  std::string const plugin = std::getenv("ASTERISM_GPU_PLUGIN");
  setenv("ASTERISM_CUSPARSE", (plugin.substr(0, plugin.rfind('/')) + "/libasterism_fake_cusparse.so").c_str(), 1);
  auto const queue = Queue::gpu("cuda");
  auto const a = halves(3, 3, {0, 1, 2, 3}, {0, 1, 2});
  for (auto const choice : {GpuProduct::cusparse, GpuProduct::own}) {
    set_gpu_product(choice);
    auto const product = in_csr(a);
    auto const rows = Layout::even(world(), 3);
    for (bool const wanted : {true, false}) {
      Vector x(rows, Dtype::float64, 1, queue), y = x.like();
      fill(x, 4.0);
      fill(y, 7.0);
      if (device::Condition const c{queue, less(0.0, dot(x, x)), wanted}; c) product->run(queue, Epilogue::assign, 1, x.data(), y.data());
      for (auto const v : y.host<double>()) EXPECT_EQ(v, wanted ? 2.0 : 7.0);
    }
  }
  set_gpu_product(GpuProduct::automatic);
}
