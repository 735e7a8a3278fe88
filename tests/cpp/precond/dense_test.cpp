// Dense factors and inverses: against LAPACK, by their definitions, and where a matrix is singular.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "asterism/apps/gallery.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/direct/dense_inverse.kernels.hpp"
#include "asterism/precond/direct/dense_lu.kernels.hpp"
#include "asterism/precond/preconditioner.hpp"
#include "harness/world.hpp"

using namespace asterism;
using precond::kernel::factorise;
using precond::kernel::invert;

namespace {

template <class T>
std::vector<T> random_square(int n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> in(-1, 1);
  std::vector<T> a(std::size_t(n) * std::size_t(n));
  for (auto& v : a) {
    double const re = in(generator), im = in(generator);
    v = from_complex<T>({re, im});
  }
  return a;
}

/// Row by row: c = a b.
template <class T>
std::vector<T> product(std::vector<T> const& a, std::vector<T> const& b, int n) {
  std::vector<T> c(a.size(), T(0));
  auto const N = std::size_t(n);
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t k = 0; k < N; ++k)
      for (std::size_t j = 0; j < N; ++j) c[i * N + j] += a[i * N + k] * b[k * N + j];
  return c;
}

template <class T>
double largest(std::vector<T> const& a) {
  double most = 0;
  for (auto const& v : a) most = std::max(most, double(magnitude(v)));
  return most;
}

template <class T>
std::vector<T> difference(std::vector<T> a, std::vector<T> const& b) {
  for (std::size_t e = 0; e < a.size(); ++e) a[e] -= b[e];
  return a;
}

std::vector<double> identity(int n) {
  std::vector<double> a(std::size_t(n) * std::size_t(n), 0.0);
  for (std::size_t i = 0; i < std::size_t(n); ++i) a[i * std::size_t(n) + i] = 1;
  return a;
}

/// The path's Laplacian of n points without boundary values, and a multiple of the identity.
std::vector<double> path(int n, double shift) {
  std::vector<double> a(std::size_t(n) * std::size_t(n), 0.0);
  auto const N = std::size_t(n);
  for (std::size_t i = 0; i + 1 < N; ++i) {
    a[i * N + i] += 1, a[(i + 1) * N + i + 1] += 1;
    a[i * N + i + 1] = a[(i + 1) * N + i] = -1;
  }
  for (std::size_t i = 0; i < N; ++i) a[i * N + i] += shift;
  return a;
}

template <class T>
void expect_factors(int n) {
  auto const N = std::size_t(n);
  auto const a = random_square<T>(n, unsigned(n));
  auto f = a;
  std::vector<int> pivots(N);
  int calls = 0, done = 0;
  ASSERT_EQ(factorise(n, f.data(), pivots.data(), [&](int k) { ++calls, done = k; }), -1);
  EXPECT_EQ(done, n);
  EXPECT_EQ(calls, (n + 127) / 128);
  // P a = L U, column by column
  auto permuted = a;
  for (std::size_t k = 0; k < N; ++k)
    for (std::size_t j = 0; j < N; ++j) std::swap(permuted[j * N + k], permuted[j * N + std::size_t(pivots[k] - 1)]);
  double worst = 0;
  for (std::size_t j = 0; j < N; ++j)
    for (std::size_t i = 0; i < N; ++i) {
      T sum = i <= j ? f[j * N + i] : T(0);
      for (std::size_t k = 0; k < std::min(i, j + 1); ++k) sum += f[k * N + i] * f[j * N + k];
      if (i > j) {
        EXPECT_LE(double(magnitude(f[j * N + i])), 1.5) << "a multiplier that partial pivoting cannot have";
      }
      worst = std::max(worst, double(magnitude(sum - permuted[j * N + i])));
    }
  EXPECT_LT(worst, 10 * n * epsilon_of(dtype_v<T>)) << n;
}

}  // namespace

TEST(DenseLU, BlocksAreTheWholeFactorisation) {
  int const before = device::host::team_size();
  for (int const threads : {1, 2, 3})
    for (int const n : {1, 2, 127, 128, 129, 255, 300}) {
      device::host::set_team_size(threads);
      expect_factors<double>(n);
      expect_factors<Complex<float>>(n);
      if (n < 200) expect_factors<float>(n), expect_factors<Complex<double>>(n);
    }
  device::host::set_team_size(before);
}

TEST(DenseLU, EndsAtAZeroPivotAndWhereItIsStopped) {
  for (int const n : {5, 200, 300})
    for (int const step : {0, 3, n - 1}) {
      auto a = identity(n);
      auto const N = std::size_t(n);
      a[std::size_t(step) * N + std::size_t(step)] = 0;
      std::vector<int> pivots(N);
      EXPECT_EQ(factorise(n, a.data(), pivots.data(), [](int) {}), step);
    }
  auto a = random_square<double>(400, 1);
  std::vector<int> pivots(400);
  EXPECT_THROW(factorise(400, a.data(), pivots.data(),
                         [](int k) {
                           if (k > 128) throw std::runtime_error("stop");
                         }),
               std::runtime_error);
}

TEST(DenseLU, SolvesWithTheMatrixItsTransposeAndItsAdjoint) {
  auto const& comm = world();
  std::int64_t const n = 70;
  la::Layout const layout = la::Layout::even(comm, n);
  std::vector<std::int64_t> i, j;
  std::vector<Complex<double>> v;
  if (comm.rank() == 0)
    for (auto const a = random_square<Complex<double>>(int(n), 8); std::ssize(v) < n * n; v.push_back(a[v.size()]))
      i.push_back(std::ssize(v) / n), j.push_back(std::ssize(v) % n);
  auto const A = la::Matrix::from_coo<std::int64_t>(layout, layout, Dtype::complex128, i, j, v.data());
  Options const options;
  std::vector<EffectiveOption> record;
  auto const M = precond::preconditioners().at("lu").make({{&options, "", &record}, {}, {}}, A);
  for (std::int64_t const columns : {1, 3})
    for (auto const& queue : {device::Queue::host(), device::Queue::thread()})
      for (int const kind : {0, 1, 2}) {
        la::Vector x(layout, Dtype::complex128, columns, queue), b = x.like(), got = x.like();
        fill_hashed(x, 5);
        if (kind == 0) A.apply(x, b), M->apply(b, got);
        else A.apply_transpose(x, b, kind == 2), M->apply_transpose(b, got, kind == 2);
        axpy(-1.0, x, got);
        for (std::int64_t c = 0; c < columns; ++c)
          EXPECT_LT(norm(got).values()[std::size_t(c)].real(), 1e-10) << columns << " columns, kind " << kind;
      }
}

TEST(DenseInverse, OfRegularMatrices) {
  for (int const n : {1, 2, 17, 90}) {
    auto const a = random_square<double>(n, 3);
    auto x = a;
    auto const found = invert(n, x.data());
    EXPECT_EQ(found.left_out, 0);
    EXPECT_LT(largest(difference(product(a, x, n), identity(n))), 1e-12 * found.condition);
    auto const z = random_square<Complex<double>>(n, 4);
    auto y = z;
    EXPECT_EQ(invert(n, y.data()).left_out, 0);
    auto one = product(z, y, n);
    for (std::size_t i = 0; i < std::size_t(n); ++i) one[i * std::size_t(n) + i] -= Complex<double>(1);
    EXPECT_LT(largest(one), 1e-9);
  }
}

TEST(DenseInverse, ItsConditionIsThatOfTheScaledMatrix) {
  int const n = 60;
  auto const N = std::size_t(n);
  auto const good = path(n, 1);
  double const known = [&] {
    auto x = good;
    return invert(n, x.data()).condition;
  }();
  EXPECT_LT(known, 100);
  for (bool const symmetric : {true, false}) {  // rows and columns in very different units: nothing is small in them
    auto a = good;
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t j = 0; j < N; ++j)
        a[i * N + j] *= std::pow(10.0, double(i % 9) * 12 - 50 + (symmetric ? double(j % 9) * 12 - 50 : 0));
    auto x = a;
    auto const found = invert(n, x.data());
    EXPECT_EQ(found.left_out, 0);
    EXPECT_LT(found.condition, 10 * known);
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t j = 0; j < N; ++j) {
        double sum = i == j ? -1 : 0, size = 0;
        for (std::size_t k = 0; k < N; ++k) sum += a[i * N + k] * x[k * N + j], size += std::abs(a[i * N + k] * x[k * N + j]);
        ASSERT_LE(std::abs(sum), 1e-12 * (size + 1)) << i << ", " << j;
      }
  }
  auto x = path(n, 1e-9);
  auto const nearly = invert(n, x.data());
  EXPECT_EQ(nearly.left_out, 0);  // small, but it is there
  EXPECT_GT(nearly.condition, 1e8);
}

TEST(DenseInverse, LeavesOutWhatTheMatrixMapsToZeroAndNoMore) {
  int const n = 60;
  auto const N = std::size_t(n);
  auto const check = [&](std::vector<double> const& a, int left_out) {  // a x a = a, and x a x = x
    auto x = a;
    auto const found = invert(n, x.data());
    EXPECT_EQ(found.left_out, left_out);
    EXPECT_LT(largest(difference(product(product(a, x, n), a, n), a)), 1e-10 * largest(a));
    EXPECT_LT(largest(difference(product(product(x, a, n), x, n), x)), 1e-10 * largest(x));
    return x;
  };
  auto const one_piece = path(n, 0);
  auto const x = check(one_piece, 1);
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j) ASSERT_EQ(x[i * N + j], x[j * N + i]);
  auto two_pieces = one_piece;
  for (auto const& [i, j, v] : {std::tuple<std::size_t, std::size_t, double>{20, 21, 1}, {21, 20, 1}, {20, 20, -1}, {21, 21, -1}})
    two_pieces[i * N + j] += v;
  check(two_pieces, 2);
  auto indefinite = path(n, -0.5);  // a positive diagonal, but at the ends, and negative directions
  indefinite[0] = indefinite[N * N - 1] = 1;
  check(indefinite, 0);
  auto unsymmetric = one_piece;  // rows still sum to zero
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j) unsymmetric[i * N + j] *= 1 + double(i % 5);
  auto y = unsymmetric;
  EXPECT_EQ(invert(n, y.data()).left_out, 1);
  EXPECT_LT(largest(difference(product(product(unsymmetric, y, n), unsymmetric, n), unsymmetric)), 1e-9);
  // what is left of the constants may be what products have rounded
  auto small = path(n, 3e-12), rounded = small;
  EXPECT_EQ(invert(n, small.data()).left_out, 0);
  EXPECT_EQ(invert(n, rounded.data(), 1e4).left_out, 1);
  std::vector<double> zero(N * N, 0.0);
  EXPECT_EQ(invert(n, zero.data()).left_out, n);
}

TEST(DenseInverse, LeavesOutKnownNullVectorsHoweverTheyAreRounded) {
  auto const check = [](auto tag) {
    using T = decltype(tag);
    // paths of 5, 1 and 4 nodes, whose constants rounding maps to 1e-11 of what their entries were made of, and a regular row
    int const n = 11;
    auto const N = std::size_t(n);
    std::vector<T> exact(N * N, T(0));
    std::vector<int> const ends = {5, 6, 10};
    std::vector<std::int32_t> const parts = {0, 0, 0, 0, 0, 5, 6, 6, 6, 6, 10};
    for (int begin = 0; auto const end : ends) {
      for (int i = begin; i + 1 < end; ++i) {
        auto const k = std::size_t(i);
        exact[k * N + k] += T(1), exact[(k + 1) * N + k + 1] += T(1);
        exact[k * N + k + 1] -= T(1), exact[(k + 1) * N + k] -= T(1);
      }
      begin = end;
    }
    exact[N * N - 1] = T(3);
    std::vector<T> const ones(N, T(1));
    for (double const noise : {0.0, 1e-11, -1e-11}) {
      auto a = exact;
      for (std::size_t i = 0; i + 1 < N; ++i) a[i * N + i] += T(noise);
      auto x = a;
      auto const found = invert<T>(n, x.data(), 1, {ones, 1, parts, 2.0});
      EXPECT_EQ(found.left_out, 3);
      EXPECT_LT(found.condition, 1e3);
      // a pseudo-inverse: A X A = A, and X maps constants of each path to zero
      EXPECT_LT(largest(difference(product(product(exact, x, n), exact, n), exact)), 1e-9);
      for (int begin = 0; auto const end : ends) {
        for (std::size_t i = 0; i < N; ++i) {
          T sum(0);
          for (int j = begin; j < end; ++j) sum += x[i * N + std::size_t(j)];
          EXPECT_LT(double(magnitude(sum)), 1e-9);
        }
        begin = end;
      }
    }
    // what is no null vector changes nothing
    auto regular = exact, other = exact;
    for (std::size_t i = 0; i < N; ++i) regular[i * N + i] += T(1), other[i * N + i] += T(1);
    EXPECT_EQ(invert<T>(n, regular.data(), 1, {ones, 1, parts, 2.0}).left_out, 0);
    invert<T>(n, other.data());
    EXPECT_EQ(largest(difference(regular, other)), 0);
  };
  check(double());
  check(Complex<double>());
}

TEST(DenseInverse, KeepsThePrecisionThatItsConditionNeeds) {
  auto const& comm = world();
  auto const apply = [](precond::DenseInverse const& M, Dtype d) {
    la::Vector x(M.range(), d), y = x.like();
    fill_hashed(x, 3);
    M.apply(x, y);
    return norm(y).real();
  };
  // 1-D: condition about n^2 / 2
  for (auto const& [points, wide] : {std::pair<std::int64_t, bool>{100, false}, {1000, true}}) {
    auto const A = apps::poisson(comm, {points}, Dtype::float64);
    precond::DenseInverse const full(A, Dtype::float64, true), low(A, Dtype::float32, true), forced(A, Dtype::float32, false);
    EXPECT_GT(full.condition(), 0.1 * double(points * points));
    EXPECT_EQ(low.memory_bytes(), (wide ? 2 : 1) * forced.memory_bytes());
    EXPECT_EQ(low.storage().find("float64") != std::string::npos, wide) << low.storage();
    EXPECT_EQ(low.dtype(), Dtype::float32);
    EXPECT_NEAR(apply(low, Dtype::float32) / apply(full, Dtype::float64), 1, 1e-4);
  }
}
