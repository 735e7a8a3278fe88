// What products of lines of a grid do beside those of format_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "la/hashed_csr.hpp"

using namespace asterism;
using namespace asterism::la;

// The lines of a grid whose last points differ: all but those are stored once.
TEST(RowPattern, EndsOfLinesThatDifferAreLeftOut) {
  for (std::int32_t const down : {1, 3}) {  // rows of a grid, and interpolation to one where three points make one
    std::int32_t const lines = 50, length = 128, coarse = (length + down - 1) / down;
    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> col;
    std::vector<double> val;
    for (std::int32_t line = 0; line < lines; ++line)
      for (std::int32_t i = 0; i < length; ++i) {
        for (std::int32_t o = 0; o < (down > 1 ? 1 + i % down : 3); ++o)
          if (i / down + o < coarse)
            col.push_back(line * coarse + i / down + o), val.push_back(i < length - 2 ? 0.5 + o : 0.1 * (i + o + line));
        ptr.push_back(std::int64_t(col.size()));
      }
    auto a = test::hashed(Dtype::float64, lines * length, lines * coarse, ptr, col);
    std::ranges::copy(val, a.entries<double>().begin());
    auto const writes = down == 1 ? Writes::all_rows : Writes::rows_with_entries;
    auto const e = down == 1 ? Epilogue::assign : Epilogue::add;
    auto const self = comm::Communicator();
    auto const rows = Layout::from_offsets(self, {0, a.rows}), columns = Layout::from_offsets(self, {0, a.cols});
    for (auto const d : {Dtype::float64, Dtype::float32}) {
      auto const block = converted(a, d);
      auto const held = choose_format(block, writes);
      EXPECT_EQ(held->name(), "row_pattern");
      EXPECT_LT(held->memory_bytes(), std::size_t(a.nnz()) * size_of(d) / 2) << down;
      Vector x(columns, d), y(rows, d), z(rows, d);
      fill_hashed(x, 1), fill(y, 1.0), fill(z, 1.0);
      CsrFormat(block, writes).run(Queue::host(), e, 1, x.data(), y.data(), {}, {});
      held->run(Queue::host(), e, 1, x.data(), z.data());
      auto const size = norm(y).real();
      axpy(-1.0, y, z);
      EXPECT_LE(norm(z).real(), 10 * epsilon_of(d) * size) << down;
    }
  }
}

// Rows outside runs, one batch and many, and a last one that is short.
TEST(RowPattern, ProductAndDotInOnePass) {
  for (std::int32_t const n : {40, 257, 5000, 30000})
    for (int const hole : {0, 31})
      for (bool const same : {false, true})
        for (auto const d : {Dtype::float64, Dtype::float32}) {
          std::vector<std::int64_t> ptr{0};
          std::vector<std::int32_t> col;
          for (std::int32_t i = 0; i < n; ++i) {
            for (std::int32_t const o : {-9, -1, 0, 1, 12})
              if (i + o >= 0 && i + o < n && !(hole && i % hole == 0 && o == 1)) col.push_back(i + o);
            ptr.push_back(std::int64_t(col.size()));
          }
          auto const held = choose_format(test::hashed(d, n, n, ptr, col, same));
          if (held->name() != "row_pattern") continue;
          EXPECT_TRUE(held->dots() || n < 5000) << n << " " << hole;
          if (!held->dots()) continue;
          auto const layout = Layout::from_offsets(comm::Communicator(), {0, n});
          Vector x(layout, d), y(layout, d), z(layout, d);
          fill_hashed(x, 1);
          held->run(Queue::host(), Epilogue::assign, 1, x.data(), y.data());
          device::Array const sum(sizeof(Complex<double>));
          held->run_and_dot(Queue::host(), x.data(), z.data(), sum);
          double const expected = dot(x, y).real(), size = norm(x).real() * norm(y).real();
          ASSERT_NEAR(sum.as<Complex<double>>()->re, expected, 1e-15 * double(n) * size) << n << " " << hole << " " << same;
          axpy(-1.0, y, z);
          ASSERT_EQ(norm(z).real(), 0) << n << " " << hole << " " << same;
        }
}
