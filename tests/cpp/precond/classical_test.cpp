// Classical coarsening and interpolation, against the formulas in dense matrices.
#include "asterism/precond/amg/classical.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "asterism/apps/gallery.hpp"
#include "asterism/base/interrupt.hpp"
#include "asterism/device/host/team.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

/// f with a Cancellation of its own.
template <class F>
auto with_cancellation(F const& f) {
  Progress progress("test", 0);
  comm::Cancellation cancel(world(), progress);
  return f(cancel);
}

/// The matrices of this page: with a wind (general), with positive couplings, and of a graph whose couplings go one way.
Dense couplings(int64_t n, bool complex, bool hermitian, unsigned seed) {
  auto const r = random(n, n, complex, seed);
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      auto const far = (i * 7 + j * 7 + (i > j ? i - j : j - i)) % 11 == 0;
      bool const one_way = !hermitian && i > j && (i + j) % 3 == 0;
      if (i == j || one_way || (std::abs(double(i - j)) > 2 && !far)) continue;
      auto const v = hermitian && i > j ? std::conj(r(j, i)) : r(i, j);
      a(i, j) = (i + j) % 5 == 0 ? 0.3 * v : -Value(0.1) - std::abs(v.real()) - Value(0, 0.5 * v.imag());  // a few of the other sign
    }
  for (int64_t i = 0; i < n; ++i) {
    Value sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += a(i, j);
    a(i, i) = i % 4 == 0 ? 1.05 * std::abs(sum) + 0.4 : -sum + Value(i % 2 ? 0 : 0.02);
  }
  return a;
}

double against(Value v, Value d) { return -(v * std::conj(d)).real(); }

/// 1 where i depends on j.
Dense strong(Dense const& a, double threshold, double max_row_sum) {
  Dense s(a.rows(), a.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    double most = 0;
    Value sum = 0;
    for (int64_t j = 0; j < a.cols(); ++j) {
      sum += a(i, j);
      if (j != i) most = std::max(most, against(a(i, j), a(i, i)));
    }
    if (max_row_sum < 1 && std::abs(sum) > max_row_sum * std::abs(a(i, i))) continue;
    for (int64_t j = 0; j < a.cols(); ++j)
      if (auto const m = against(a(i, j), a(i, i)); j != i && m > 0 && m >= threshold * most) s(i, j) = 1;
  }
  return s;
}

bool is(Dense const& s, int64_t i, int64_t j) { return s(i, j) != Value(0); }

/// Rows of P over all columns, of which those of coarse unknowns are not zero: equations (4.9) and (4.10) of De Sterck et al. (2008). Rows
/// with more entries than long_row bring no coarse unknowns.
Dense extended(Dense const& a, Dense const& s, std::vector<bool> const& coarse, int64_t long_row = 1000) {
  auto const n = a.rows();
  auto const entries = [&](int64_t i) {
    int64_t count = 0;
    for (int64_t j = 0; j < n; ++j) count += a(i, j) != Value(0);
    return count;
  };
  Dense p(n, n);
  for (int64_t i = 0; i < n; ++i) {
    if (coarse[std::size_t(i)]) {
      p(i, i) = 1;
      continue;
    }
    std::vector<bool> hat(std::size_t(n), false);
    for (int64_t j = 0; j < n; ++j) {
      if (!is(s, i, j)) continue;
      if (coarse[std::size_t(j)]) hat[std::size_t(j)] = true;
      else if (entries(j) <= long_row)
        for (int64_t k = 0; k < n; ++k)
          if (is(s, j, k) && coarse[std::size_t(k)]) hat[std::size_t(k)] = true;
    }
    auto const bar = [&](int64_t k, int64_t l) { return against(a(k, l), a(k, k)) > 0 ? a(k, l) : Value(0); };
    Value d = a(i, i);
    for (int64_t k = 0; k < n; ++k) {
      if (k == i || a(i, k) == Value(0)) continue;
      if (hat[std::size_t(k)]) {
        p(i, k) += a(i, k);
        continue;
      }
      Value b = 0;
      if (is(s, i, k)) {
        b = bar(k, i);
        for (int64_t l = 0; l < n; ++l)
          if (hat[std::size_t(l)]) b += bar(k, l);
      }
      if (b == Value(0)) {
        d += a(i, k);
        continue;
      }
      d += a(i, k) * bar(k, i) / b;
      for (int64_t l = 0; l < n; ++l)
        if (hat[std::size_t(l)]) p(i, l) += a(i, k) * bar(k, l) / b;
    }
    for (int64_t l = 0; l < n; ++l) p(i, l) *= -1.0 / d;
  }
  return p;
}

Dense direct_formula(Dense const& a, Dense const& s, std::vector<bool> const& coarse) {
  auto const n = a.rows();
  Dense p(n, n);
  for (int64_t i = 0; i < n; ++i) {
    if (coarse[std::size_t(i)]) {
      p(i, i) = 1;
      continue;
    }
    Value all = 0, of_coarse = 0, d = a(i, i);
    for (int64_t k = 0; k < n; ++k) {
      if (k == i) continue;
      (against(a(i, k), a(i, i)) > 0 ? all : d) += a(i, k);
      if (is(s, i, k) && coarse[std::size_t(k)]) of_coarse += a(i, k);
    }
    for (int64_t k = 0; k < n; ++k)
      if (is(s, i, k) && coarse[std::size_t(k)]) p(i, k) = -a(i, k) * all / (of_coarse * d);
  }
  return p;
}

Dense without_fine_columns(Dense const& p, std::vector<bool> const& coarse) {
  Dense out(p.rows(), int64_t(std::count(coarse.begin(), coarse.end(), true)));
  for (int64_t j = 0, c = 0; j < p.cols(); ++j) {
    if (!coarse[std::size_t(j)]) continue;
    for (int64_t i = 0; i < p.rows(); ++i) out(i, c) = p(i, j);
    ++c;
  }
  return out;
}

struct Result {
  std::vector<bool> coarse;  // of all unknowns, on every rank
  Dense P;
};
template <class T>
Result result(la::Matrix const& A, ClassicalOptions const& options, std::vector<std::int32_t> const& component = {}) {
  return with_cancellation([&](comm::Cancellation& cancel) {
    Buffer<std::int32_t> of(component.empty() ? 0 : A.range().local_size());
    for (int64_t i = 0; i < of.size(); ++i) of[i] = component[std::size_t(A.range().begin() + i)];
    auto const rows = rows_of<T>(A);
    auto const s = split(rows, A.range(), component.empty() ? 1 : 1 + *std::max_element(component.begin(), component.end()), of, 0.25,
                         options, cancel);
    auto const P = classical_interpolation(s, options, cancel);
    la::Vector marks(A.range(), dtype_v<T>);
    for (int64_t i = 0; i < A.range().local_size(); ++i)
      marks.template host<T>()[std::size_t(i)] = s.number[i + s.A.map.below] >= 0 ? T(1) : T(0);
    auto const all = to_dense(marks);
    Result out;
    for (int64_t i = 0; i < all.rows(); ++i) out.coarse.push_back(all(i, 0) != Value(0));
    out.P = to_dense(matrix_of(P, A.range(), s.coarse));
    return out;
  });
}
Result result(la::Matrix const& A, ClassicalOptions const& options, std::vector<std::int32_t> const& component = {}) {
  return is_complex(A.dtype()) ? result<Complex<double>>(A, options, component) : result<double>(A, options, component);
}

ClassicalOptions options(CoarseningType c, InterpolationType i = InterpolationType::extended, int64_t most = 0) {
  ClassicalOptions o;
  o.coarsening = c;
  o.interpolation = i;
  o.most_entries = most;
  return o;
}

constexpr CoarseningType both[] = {CoarseningType::pmis, CoarseningType::hmis};

}  // namespace

TEST(Classical, CoarsePointsAreAnIndependentSetThatOthersDependOn) {
  for (auto const type : both)
    for (bool const complex : {false, true})
      for (bool const hermitian : {false, true})
        for (int64_t const n : {1, 2, 9, 60}) {
          auto const a = couplings(n, complex, hermitian, unsigned(n));
          auto const layout = uneven(world(), n);
          auto const A = to_sparse(a, layout, layout, complex ? Dtype::complex128 : Dtype::float64);
          auto const s = strong(a, 0.25, 0.9);
          auto const coarse = result(A, options(type)).coarse;
          for (int64_t i = 0; i < n; ++i) {
            bool needed = false, served = false;
            for (int64_t j = 0; j < n; ++j) {
              needed = needed || is(s, j, i);
              served = served || (is(s, i, j) && coarse[std::size_t(j)]);
              bool const mutual = is(s, i, j) && is(s, j, i);
              EXPECT_FALSE(mutual && coarse[std::size_t(i)] && coarse[std::size_t(j)]) << i << " " << j;
            }
            EXPECT_TRUE(coarse[std::size_t(i)] ? needed : served || !needed) << i;
          }
          EXPECT_GE(std::count(coarse.begin(), coarse.end(), true), n / 10);
        }
}

TEST(Classical, FirstPassOfRugeAndStuebenTakesEverySecondPoint) {
  auto const A = apps::poisson(world(), {40}, Dtype::float64);
  auto const coarse = result(A, options(CoarseningType::hmis)).coarse;
  for (std::size_t i = 1; i < 40; ++i) EXPECT_NE(coarse[i], coarse[i - 1]);
}

TEST(Classical, InterpolationIsThatOfTheFormula) {
  for (auto const type : both)
    for (auto const dtype : {Dtype::float64, Dtype::complex128})
      for (bool const hermitian : {false, true})
        for (int64_t const n : {1, 2, 7, 40, 90}) {
          auto const a = couplings(n, is_complex(dtype), hermitian, unsigned(100 + n));
          auto const s = strong(a, 0.25, 0.9);
          auto const layout = n % 2 ? uneven(world(), n) : la::Layout::even(world(), n);
          auto const A = to_sparse(a, layout, layout, dtype);
          for (auto const kind : {InterpolationType::extended, InterpolationType::direct}) {
            auto const got = result(A, options(type, kind));
            auto const formula = kind == InterpolationType::direct ? direct_formula(a, s, got.coarse) : extended(a, s, got.coarse);
            auto const want = without_fine_columns(formula, got.coarse);
            EXPECT_LT(norm(got.P - want), 1e-11 * (1 + norm(want))) << name_of(dtype) << " " << n << " " << int(kind);
          }
        }
}

TEST(Classical, LongRowsBringNoCoarseUnknowns) {
  int64_t const n = 150, hubs[] = {3, 50, 120};
  for (auto const dtype : {Dtype::float64, Dtype::complex128})
    for (bool const hermitian : {false, true}) {
      auto a = couplings(n, is_complex(dtype), hermitian, 7);
      for (auto const h : hubs)
        for (int64_t j = 0; j < n; ++j)
          if (j != h && (j - h + n) % n > 25) a(h, j) = a(j, h) = -0.5 - 0.01 * double((h + j) % 5), a(h, h) += 0.6, a(j, j) += 0.6;
      auto const s = strong(a, 0.25, 0.9);
      auto const layout = uneven(world(), n);
      auto const got = result(to_sparse(a, layout, layout, dtype), options(CoarseningType::pmis));
      EXPECT_EQ(std::count_if(hubs, hubs + 3, [&](int64_t h) { return got.coarse[std::size_t(h)]; }), 1);
      auto const want = without_fine_columns(extended(a, s, got.coarse, 122), got.coarse);  // 10 sqrt(150)
      EXPECT_LT(norm(got.P - want), 1e-11 * (1 + norm(want))) << name_of(dtype) << " " << hermitian;
      EXPECT_GT(norm(got.P - without_fine_columns(extended(a, s, got.coarse), got.coarse)), 1e-6) << "the rule has an effect";
    }
}

TEST(Classical, TruncationKeepsTheLargestAndTheSum) {
  for (int64_t const most : {1, 2, 4}) {
    auto const a = couplings(90, false, true, 5);
    auto const layout = uneven(world(), 90);
    auto const A = to_sparse(a, layout, layout, Dtype::float64);
    auto const whole = result(A, options(CoarseningType::pmis)).P, P = result(A, options(CoarseningType::pmis, {}, most)).P;
    int64_t shorter = 0;
    for (int64_t i = 0; i < 90; ++i) {
      std::vector<double> sizes;
      Value all = 0, kept = 0, sum = 0;
      double size = 0, least = 1e300;
      int64_t entries = 0;
      for (int64_t c = 0; c < P.cols(); ++c) {
        if (whole(i, c) != Value(0)) sizes.push_back(std::abs(whole(i, c)));
        all += whole(i, c);
        sum += P(i, c);
        if (P(i, c) == Value(0)) continue;
        ++entries;
        kept += whole(i, c);
        size += std::abs(whole(i, c));
        least = std::min(least, std::abs(whole(i, c)));
      }
      EXPECT_EQ(entries, std::min<int64_t>(most, int64_t(sizes.size())));
      shorter += entries < int64_t(sizes.size());
      if (entries == 0) continue;
      std::sort(sizes.rbegin(), sizes.rend());
      EXPECT_NEAR(least, sizes[std::size_t(entries - 1)], 1e-6 * least);
      EXPECT_LT(std::abs(sum - (std::abs(kept) > 0.1 * size ? all : kept)), 1e-12);
    }
    EXPECT_GT(shorter, 10);
  }
  ClassicalOptions o = options(CoarseningType::pmis);
  o.truncation = 0.3;
  auto const P = result(apps::poisson(world(), {12, 11}, Dtype::float64, {true, false, {}}), o).P;
  for (int64_t i = 0; i < P.rows(); ++i) {
    double most = 0, least = 1e300;
    for (int64_t c = 0; c < P.cols(); ++c)
      if (P(i, c) != Value(0)) most = std::max(most, std::abs(P(i, c))), least = std::min(least, std::abs(P(i, c)));
    EXPECT_GE(least, 0.3 * most * (1 - 1e-12));
  }
}

TEST(Classical, ConstantsAreInterpolatedWhereRowsSumToZero) {
  for (auto const type : both)
    for (int64_t const most : {0, 4})
      for (bool const box : {false, true}) {
        auto const A = apps::poisson(world(), {9, 8, 7}, Dtype::float64, {box, true, {}});
        auto const got = result(A, options(type, {}, most));
        for (int64_t i = 0; i < got.P.rows(); ++i) {
          Value sum = 0;
          int64_t entries = 0;
          for (int64_t c = 0; c < got.P.cols(); ++c) sum += got.P(i, c), entries += got.P(i, c) != Value(0);
          EXPECT_LT(std::abs(sum - 1.0), 1e-12) << i;
          EXPECT_LE(entries, got.coarse[std::size_t(i)] ? 1 : most ? most : got.P.cols());
        }
      }
}

TEST(Classical, IsTheSameOnAnyNumberOfRanks) {
  for (auto const type : both)
    for (int64_t const most : {0, 4}) {
      // more than one block of the first pass
      std::vector<std::vector<int64_t>> const shapes = {{23, 19}, {300, 300}};
      for (auto const& shape : shapes) {
        auto const A = apps::convection_diffusion(world(), shape, 0.05, {1, 0.3}, Dtype::float64);
        auto const alone = apps::convection_diffusion(comm::Communicator(), shape, 0.05, {1, 0.3}, Dtype::float64);
        with_cancellation([&](comm::Cancellation& cancel) {
          auto const o = options(type, {}, most);
          auto const s = split(rows_of<double>(A), A.range(), 1, {}, 0.25, o, cancel);
          auto const P = classical_interpolation(s, o, cancel);
          auto const s1 = split(rows_of<double>(alone), alone.range(), 1, {}, 0.25, o, cancel);
          auto const P1 = classical_interpolation(s1, o, cancel);
          bool same = s.coarse.global_size() == s1.coarse.global_size();  // bits
          for (std::int32_t i = 0; same && i < P.count; ++i) {
            auto const r = A.range().begin() + i;
            same = P.ptr[i + 1] - P.ptr[i] == P1.ptr[r + 1] - P1.ptr[r];
            for (int64_t e = 0; same && e < P.ptr[i + 1] - P.ptr[i]; ++e)
              same = P.map.global(P.col[P.ptr[i] + e]) == P1.col[P1.ptr[r] + e] && P.val[P.ptr[i] + e] == P1.val[P1.ptr[r] + e];
          }
          EXPECT_TRUE(same) << shape[0] << " " << int(type) << " " << most;
        });
      }
    }
}

TEST(Classical, ComponentsAreInterpolatedByThemselves) {
  auto const A = apps::elasticity(world(), {4, 3, 3}, 1, 0.3, Dtype::float64);
  auto a = to_dense(A);
  std::vector<std::int32_t> component;
  for (int64_t i = 0; i < a.rows(); ++i) component.push_back(std::int32_t(i % 3));
  for (auto const type : both) {
    auto const got = result(A, options(type), component);
    for (int64_t i = 0; i < a.rows(); ++i)
      for (int64_t j = 0; j < a.rows(); ++j)
        if (i % 3 != j % 3) a(i, j) = 0;
    auto const want = without_fine_columns(extended(a, strong(a, 0.25, 0.9), got.coarse), got.coarse);
    EXPECT_LT(norm(got.P - want), 1e-11 * norm(want));
  }
}

TEST(Classical, FewRowsOfManyEntriesAskForCtrlCTooNowAndThen) {
  if (world().size() > 1) return;
  int64_t const n = 250;  // rows of about 120 entries; none has 256 rows before it
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j)
      if ((i * i + j * j + 7 * i * j) % 17 < 8) a(i, j) = a(j, i) = -1;
  for (int64_t i = 0; i < n; ++i) a(i, i) = 250;
  auto const layout = la::Layout::even(world(), n);
  auto const A = rows_of<double>(to_sparse(a, layout, layout, Dtype::float64));
  int const threads = device::host::team_size();
  device::host::set_team_size(1);
  int asked = 0;
  set_interrupt_poll([&asked] { return ++asked < 0; }, 0);
  with_cancellation([&](comm::Cancellation& cancel) {
    ClassicalOptions const o;
    auto const s = split(A, layout, 1, {}, 0.25, o, cancel);
    asked = 0;
    classical_interpolation(s, o, cancel);
  });
  set_interrupt_poll({});
  device::host::set_team_size(threads);
  EXPECT_GE(asked, 4);
}

TEST(Classical, AZeroOnTheDiagonalIsAnErrorOfAllRanks) {
  auto a = couplings(30, false, true, 1);
  a(17, 17) = 0;
  auto const layout = uneven(world(), 30);
  auto const A = to_sparse(a, layout, layout, Dtype::float64);
  EXPECT_NE(error_of([&] { result(A, options(CoarseningType::pmis)); }).find("row 17 of 30 has a zero on the diagonal"), std::string::npos);
}
