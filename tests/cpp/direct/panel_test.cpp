// The dense kernels of triangular solves, in every dtype, with nothing readable behind or before their numbers.
#include "asterism/direct/multifrontal/panel.kernels.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <random>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/direct/triangular/sweep.kernels.hpp"
#include "harness/fenced.hpp"

using namespace asterism;
using namespace asterism::direct;
using harness::Fence, harness::Fenced;

namespace {

std::mt19937_64 random_bits(7);

template <class T>
void fill(Fenced<T> const& v) {
  std::uniform_real_distribution<double> in(-1, 1);
  for (auto& x : v.all()) {
    if constexpr (is_complex_v<T>) x = T(real_t<T>(in(random_bits)), real_t<T>(in(random_bits)));
    else x = T(in(random_bits));
  }
}

std::complex<double> wide(auto v) { return to_complex(v); }

template <class T>
double level() {
  return sizeof(real_t<T>) == 4 ? 2e-4 : 1e-12;
}

template <class T>
class Panel : public testing::Test {};
using Dtypes = testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(Panel, Dtypes);

TYPED_TEST(Panel, ProductsStayInside) {
  using T = TypeParam;
  for (auto const fence : {Fence::behind, Fence::before})
    for (int const m : {1, 3, 7, 8, 17, 260})
      for (int const w : {1, 2, 3, 4, 5, 8, 11})
        for (int const k : {1, 2, 3, 4, 5, 8, 9}) {
          std::int64_t const leading = m + (w % 3);
          Fenced<T> const b(std::size_t((w - 1) * leading + m), fence), x(std::size_t(w * k), fence), y(std::size_t(m * k), fence);
          fill(b), fill(x), fill(y);
          std::vector<std::complex<double>> sums(y.all().size());
          for (int r = 0; r < m; ++r)
            for (int j = 0; j < w; ++j)
              for (int c = 0; c < k; ++c)
                sums[std::size_t(r * k + c)] += wide(b[std::size_t(j * leading + r)]) * wide(x[std::size_t(j * k + c)]);
          kernel::multiply(m, w, k, b.data(), leading, x.data(), y.data());
          for (std::size_t i = 0; i < sums.size(); ++i)
            ASSERT_LE(std::abs(sums[i] - wide(y[i])), level<T>()) << m << ' ' << w << ' ' << k << " at " << i;

          sums.assign(x.all().size(), 0);
          for (int r = 0; r < m; ++r)
            for (int j = 0; j < w; ++j)
              for (int c = 0; c < k; ++c)
                sums[std::size_t(j * k + c)] += wide(b[std::size_t(j * leading + r)]) * wide(y[std::size_t(r * k + c)]);
          kernel::multiply_transposed(m, w, k, b.data(), leading, y.data(), x.data());
          for (std::size_t i = 0; i < sums.size(); ++i)
            ASSERT_LE(std::abs(sums[i] - wide(x[i])), m * level<T>()) << "transposed " << m << ' ' << w << ' ' << k << " at " << i;
        }
}

TYPED_TEST(Panel, SolvesStayInside) {
  using T = TypeParam;
  for (auto const fence : {Fence::behind, Fence::before})
    for (int const w : {1, 2, 3, 4, 5, 7, 12})
      for (int const k : {1, 2, 3, 4, 7, 8, 10})
        for (bool const transposed : {false, true}) {
          auto const all = std::size_t(w * k);
          Fenced<T> const d(std::size_t(w * w), fence), sum(all, fence), x(all, fence);
          fill(d), fill(sum), fill(x);
          for (int i = 0; i < w; ++i) d[std::size_t(i * w + i)] += T(4);
          std::vector<std::complex<double>> b;
          for (std::size_t i = 0; i < all; ++i) b.push_back(wide(x[i]) - wide(sum[i]));
          kernel::solve_diagonal<T>(w, k, d.data(), nullptr, sum.data(), x.data(), transposed);
          for (int i = 0; i < w; ++i)  // L x = b, or L^T x = b
            for (int c = 0; c < k; ++c) {
              std::complex<double> left = 0;
              for (int j = transposed ? i : 0; j < (transposed ? w : i + 1); ++j)
                left += wide(d[std::size_t(transposed ? i * w + j : j * w + i)]) * wide(x[std::size_t(j * k + c)]);
              ASSERT_LE(std::abs(left - b[std::size_t(i * k + c)]), level<T>()) << w << ' ' << k << ' ' << transposed;
            }
        }
}

/// A front with rows below its pivots: both factors, both ways.
TYPED_TEST(Panel, FrontsStayInside) {
  using T = TypeParam;
  for (auto const fence : {Fence::behind, Fence::before})
    for (int const w : {1, 3, 4, 6})
      for (int const below : {0, 1, 5, 9})
        for (int const k : {1, 2, 4, 8, 11})
          for (int form = 0; form < 8; ++form) {
            bool const of_u = form & 1, transposed = form & 2, unit = form & 4;
            int const n = w + below, leading = of_u ? w : n;
            Fenced<T> const panel(std::size_t(w * leading), fence), right(std::size_t(w * below), fence), x(std::size_t(n * k), fence),
                work(std::size_t(n * std::min(k, 8)), fence);
            Fenced<std::int32_t> const list(std::size_t(below), fence);
            std::iota(list.all().begin(), list.all().end(), w);
            fill(panel), fill(right), fill(x);
            for (int i = 0; i < w; ++i) panel[std::size_t(i * leading + i)] += T(4);
            // the n x n triangle whose rows or columns beyond the pivots are those of the identity
            auto const entry = [&](int i, int j) -> std::complex<double> {
              if (transposed) std::swap(i, j);
              if (i == j) return i < w && !unit ? wide(panel[std::size_t(i * leading + i)]) : 1;
              if (of_u ? i > j : i < j) return 0;
              if (of_u ? i >= w : j >= w) return 0;
              if (of_u && j >= w) return wide(right[std::size_t(i * below + j - w)]);
              return wide(panel[std::size_t(j * leading + i)]);
            };
            std::vector<std::complex<double>> b;
            for (auto const v : x.all()) b.push_back(wide(v));
            kernel::FrontPanel<T> const front{0, w, below, panel.data(), leading, right.data(), list.data()};
            kernel::solve_front(front, of_u, transposed, unit, k, x.data(), work.data());
            for (int i = 0; i < n; ++i)
              for (int c = 0; c < k; ++c) {
                std::complex<double> left = 0;
                for (int j = 0; j < n; ++j) left += entry(i, j) * wide(x[std::size_t(j * k + c)]);
                ASSERT_LE(std::abs(left - b[std::size_t(i * k + c)]), 100 * level<T>())
                    << w << ' ' << below << ' ' << k << " form " << form;
              }
          }
}

}  // namespace
