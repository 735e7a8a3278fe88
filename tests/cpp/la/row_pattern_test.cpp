// What products of lines of a grid do beside those of format_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/gpu.hpp"
#include "harness/repeats.hpp"
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

namespace {

/// Points of a grid coupled to those at most `reach` away in each dimension, along lines and planes alone or everywhere, but for some rows
/// without one neighbour. Entries of a hash of their two points, where `own` says not of their order too.
Csr grid(std::vector<std::int32_t> const& shape, std::int32_t reach, bool everywhere, std::int32_t hole, auto const& own) {
  std::int32_t rows = 1, span = 0;
  for (auto d = shape.size(); d-- > 0; rows *= shape[d]) span += reach * rows;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  auto const place = [&](std::int32_t i) {
    std::vector<std::int32_t> at(shape.size());
    for (auto d = shape.size(); d-- > 0; i /= shape[d]) at[d] = i % shape[d];
    return at;
  };
  for (std::int32_t i = 0; i < rows; ++i) {
    for (auto j = std::max(0, i - span); j < std::min(rows, i + span + 1); ++j) {
      auto const a = place(i), b = place(j);
      std::int32_t away = 0, farthest = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        away += a[d] != b[d];
        farthest = std::max(farthest, std::abs(a[d] - b[d]));
      }
      if (farthest <= reach && (everywhere || away <= 1) && !(hole && std::max(i, j) % hole == 0 && std::abs(i - j) == 1)) col.push_back(j);
    }
    ptr.push_back(std::int64_t(col.size()));
  }
  auto a = test::hashed(Dtype::float64, rows, rows, ptr, col);
  for (std::int32_t i = 0; i < rows; ++i)
    for (auto p = ptr[std::size_t(i)]; p < ptr[std::size_t(i) + 1]; ++p) {
      auto const j = col[std::size_t(p)];
      if (!own(i, j)) a.entries<double>()[std::size_t(p)] = std::sin(1.0 + 12.9898 * std::min(i, j) + 78.233 * std::max(i, j));
    }
  return a;
}

}  // namespace

// Values left of the diagonal that are the mirror images of others are not held, whichever they are.
TEST(RowPattern, MirrorImagesOfValuesAreHeldOnce) {
  auto const none = [](std::int32_t, std::int32_t) { return false; };
  auto const all = [](std::int32_t, std::int32_t) { return true; };
  auto const some = [](std::int32_t i, std::int32_t j) { return (i / 300) % 2 == 0 && i > j; };
  auto const one = [](std::int32_t i, std::int32_t j) { return i == 777 && j == 776; };
  struct Case {
    std::vector<std::int32_t> shape;
    std::int32_t reach;
    bool everywhere;
  };
  std::vector<Queue> queues{Queue::host()};
  if (on_the_emulated_gpu()) queues.push_back(Queue::gpu("cuda"));
  auto const self = comm::Communicator();
  test::Thinned several;
  for (auto const& [shape, reach, everywhere] :
       {Case{{1500}, 1, false}, {{1500}, 4, false}, {{30, 64}, 1, false}, {{30, 64}, 1, true}, {{5, 6, 60}, 1, true}, {{12, 120}, 5, true}})
    for (std::int32_t const hole : {0, 211}) {
      if (test::sanitized && hole && reach > 1) continue;
      std::size_t held_bytes[4] = {};
      for (int which = 0; which < 4; ++which) {
        auto const a = which == 0   ? grid(shape, reach, everywhere, hole, none)
                       : which == 1 ? grid(shape, reach, everywhere, hole, all)
                       : which == 2 ? grid(shape, reach, everywhere, hole, some)
                                    : grid(shape, reach, everywhere, hole, one);
        auto const layout = Layout::from_offsets(self, {0, a.rows});
        for (int const kind : {0, 1, 2, 3}) {  // float64, float32, bfloat16, and float32 of the float64 block
          auto const d = kind == 0 ? Dtype::float64 : Dtype::float32;
          Csr plain = kind == 0 ? a : kind == 2 ? rounded_to_bfloat16(converted(a, d)) : converted(a, d);
          auto const held = kind == 3 ? choose_format(a, Writes::all_rows, d, choose_format(a).get()) : choose_format(plain);
          plain.bfloat16 = false;
          auto const in_csr = std::make_shared<CsrFormat const>(plain);
          EXPECT_EQ(held->name(), "row_pattern");
          if (kind == 0) held_bytes[which] = held->memory_bytes();
          for (auto const& queue : queues)
            for (std::int64_t const k : {1, 2, 9})
              for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth}) {
                if (k > 1 && several.skips()) continue;
                Vector x(layout, d, k, queue), b(layout, d, k, queue), w(layout, d, 1, queue), y(layout, d, k, queue), z = y.like();
                fill_hashed(x, 1), fill_hashed(b, 2), fill_hashed(w, 3);
                in_csr->run(queue, e, k, x.data(), y.data(), b.data(), w.data());
                held->run(queue, e, k, x.data(), z.data(), b.data(), w.data());
                auto const size = norm(y).real();
                axpy(-1.0, y, z);
                ASSERT_LE(norm(z).real(), 10 * epsilon_of(d) * size)
                    << shape.size() << " " << reach << " " << which << " " << kind << " " << k;
              }
        }
      }
      double const all_of = double(held_bytes[1]);
      EXPECT_LT(double(held_bytes[0]), 0.75 * all_of) << shape.size() << " " << reach << " " << hole;
      EXPECT_LE(double(held_bytes[3]), shape.size() > 1 ? 0.85 * all_of : all_of) << shape.size() << " " << reach << " " << hole;
      EXPECT_LT(held_bytes[0], held_bytes[2]) << shape.size() << " " << reach << " " << hole;
      EXPECT_LE(held_bytes[0], held_bytes[3]) << shape.size() << " " << reach << " " << hole;
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
          Vector x(layout, d), y(layout, d), z(layout, d), b(layout, d), w(layout, d);
          fill_hashed(x, 1), fill_hashed(b, 2), fill_hashed(w, 3);
          for (auto const e : {Epilogue::assign, Epilogue::smooth}) {
            held->run(Queue::host(), e, 1, x.data(), y.data(), b.data(), w.data());
            device::Array const sum(sizeof(Complex<double>));
            held->run_and_dot(Queue::host(), e, x.data(), z.data(), sum, b.data(), w.data());
            auto const& left = e == Epilogue::smooth ? b : x;
            double const expected = dot(left, y).real(), size = norm(left).real() * norm(y).real();
            ASSERT_NEAR(sum.as<Complex<double>>()->re, expected, 1e-15 * double(n) * size) << n << " " << hole << " " << same;
            axpy(-1.0, y, z);
            ASSERT_EQ(norm(z).real(), 0) << n << " " << hole << " " << same;
          }
        }
}
