// Factors that UMFPACK, SuperLU, MUMPS and CHOLMOD make, where they are installed, and L and U that are given.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/direct/foreign/foreign_factors.hpp"
#include "asterism/direct/foreign/taken_factors.hpp"
#include "asterism/direct/multifrontal/factors.hpp"
#include "harness/dense.hpp"

using namespace asterism;
using namespace asterism::direct;
using namespace asterism::test;

namespace {

struct PeerName {
  char const *name, *variable;
  bool hermitian, single, predicts;
  friend void PrintTo(PeerName const& p, std::ostream* to) { *to << p.name; }
};
constexpr PeerName peers[] = {{"umfpack", "ASTERISM_UMFPACK", false, false, true},
                              {"superlu", "ASTERISM_SUPERLU", false, true, false},
                              {"mumps", "ASTERISM_MUMPS", false, true, true},
                              {"cholmod", "ASTERISM_CHOLMOD", true, false, true}};

foreign::PeerOptions options_of(PeerName const& p) {
  foreign::PeerOptions out;
  out.name = p.name;
  out.kind = p.hermitian ? FactorKind::cholesky : FactorKind::lu;
  return out;
}

/// The matrix and what it holds after rounding to the dtype.
struct Problem {
  la::Csr sparse;
  Dense dense;
  Problem(Dense const& a, Dtype dtype) {
    auto const layout = la::Layout::even({}, a.rows());
    auto const A = to_sparse(a, layout, layout, dtype);
    sparse = A.diagonal_block();
    dense = to_dense(A);
  }
};

/// Of LU with no entry on most of the diagonal.
Problem problem_for(bool hermitian, std::int64_t n, Dtype dtype, unsigned seed = 1) {
  auto const a = hermitian ? sparse_positive(n, is_complex(dtype), seed) : sparse_general(n, is_complex(dtype), seed);
  if (hermitian) return {a, dtype};
  Dense turned(n, n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) turned((i + 5) % n, j) = a(i, j);
  return {turned, dtype};
}

/// The largest difference from what elimination says, beside it.
double error_of_solve(SerialFactors const& f, Dtype dtype, Dense const& a, char trans, std::int64_t k) {
  auto const n = a.rows();
  auto const b = random(n, k, is_complex(dtype), 7);
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> x;
    Dense held(n, k);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < k; ++c) {
        x.push_back(from_complex<T>(b(i, c)));
        held(i, c) = to_complex(x.back());
      }
    f.solve(trans, k, x.data());
    Dense found(n, k);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < k; ++c) found(i, c) = to_complex(x[std::size_t(i * k + c)]);
    auto const exact = solved(trans == 'N' ? a : transposed(a, trans == 'C'), held);
    return n == 0 || k == 0 ? 0.0 : norm(found - exact) / norm(exact);
  });
}

/// Sign and logarithm, by elimination with the largest pivot of each column.
Determinant determinant_of(Dense a) {
  Value phase = 1;
  double log = 0;
  for (std::int64_t k = 0; k < a.rows(); ++k) {
    auto best = k;
    for (auto i = k; i < a.rows(); ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    if (best != k) phase = -phase;
    for (std::int64_t j = 0; j < a.rows(); ++j) std::swap(a(k, j), a(best, j));
    phase *= a(k, k) / std::abs(a(k, k));
    log += std::log(std::abs(a(k, k)));
    for (auto i = k + 1; i < a.rows(); ++i) {
      auto const by = a(i, k) / a(k, k);
      for (auto j = k; j < a.rows(); ++j) a(i, j) -= by * a(k, j);
    }
  }
  return {phase.real(), phase.imag(), log};
}

std::string told_by(la::Csr const& a, foreign::PeerOptions const& options) {
  try {
    foreign::foreign_factors(a, options);
    return "";
  } catch (Error const& e) {
    return format("{}: {}", name_of(e.kind()), e.what());
  }
}

bool says_none(PeerName const& p) {
  auto const* const v = std::getenv(p.variable);
  return v && std::string_view(v) == "none";
}

class PeerTest : public ::testing::TestWithParam<std::tuple<PeerName, Dtype>> {
 protected:
  PeerName const& peer() const { return std::get<0>(GetParam()); }
  Dtype dtype() const { return std::get<1>(GetParam()); }
  bool offered() const { return peer().single || real_of(dtype()) == Dtype::float64; }
  Problem problem(std::int64_t n, unsigned seed = 1) const { return problem_for(peer().hermitian, n, dtype(), seed); }
  foreign::PeerOptions options() const { return options_of(peer()); }
  void SetUp() override {
    if (!offered()) GTEST_SKIP() << peer().name << " has no " << asterism::name_of(dtype());
    auto const told = told_by(problem(3).sparse, options());
    if (told.starts_with("UnsupportedError")) GTEST_SKIP() << told;
    ASSERT_EQ(told, "");
  }
};

std::string name_of_case(::testing::TestParamInfo<std::tuple<PeerName, Dtype>> const& p) {
  return format("{}_{}", std::get<0>(p.param).name, asterism::name_of(std::get<1>(p.param)));
}

INSTANTIATE_TEST_SUITE_P(All, PeerTest, ::testing::Combine(::testing::ValuesIn(peers), ::testing::ValuesIn(all_dtypes)), name_of_case);

}  // namespace

TEST_P(PeerTest, SolvesInEveryOrder) {
  std::vector<std::string> orderings{"auto", "natural", "amd", "rcm"};
  for (std::int64_t const n : {1, 2, 17, 60})
    for (auto const& ordering : orderings) {
      auto const p = problem(n, unsigned(n));
      auto with = options();
      with.ordering = ordering;
      auto const f = foreign::foreign_factors(p.sparse, with);
      for (char const trans : {'N', 'T', 'C'})
        for (std::int64_t const k : {0, 1, 3})
          EXPECT_LE(error_of_solve(*f, dtype(), p.dense, trans, k), 100 * tolerance(dtype())) << n << ", " << ordering << ", " << trans;
      EXPECT_GE(f->info().entries, n);
      EXPECT_FALSE(f->info().by.empty());
      EXPECT_FALSE(f->info().ordering.empty());
      EXPECT_TRUE(std::isnan(f->info().growth));
    }
}

TEST_P(PeerTest, NewValuesKeepTheAnalysis) {
  auto const p = problem(40), q = problem(40, 2);
  auto const f = foreign::foreign_factors(p.sparse, options());
  Problem twice(3.0 * p.dense, dtype());
  ASSERT_TRUE(f->update(twice.sparse));
  EXPECT_LE(error_of_solve(*f, dtype(), twice.dense, 'N', 2), 100 * tolerance(dtype()));
  ASSERT_TRUE(f->update(p.sparse));
  EXPECT_LE(error_of_solve(*f, dtype(), p.dense, 'T', 2), 100 * tolerance(dtype()));
  EXPECT_THROW(f->update(problem(39).sparse), Error);
}

TEST_P(PeerTest, DeterminantAndConditionAreOfTheMatrix) {
  auto const p = problem(31);
  auto const f = foreign::foreign_factors(p.sparse, options());
  auto const d = f->determinant(), exact = determinant_of(p.dense);
  double const near = 1e3 * epsilon_of(dtype());
  EXPECT_NEAR(d.re, exact.re, near);
  EXPECT_NEAR(d.im, exact.im, near);
  EXPECT_NEAR(d.log, exact.log, near * std::max(1.0, std::abs(exact.log)));
  auto ours = FactorOptions{};
  ours.kind = options().kind;
  Factors const by_us(p.sparse, ours);
  EXPECT_GE(f->condition(), 0.3 * by_us.condition());
  EXPECT_LE(f->condition(), 3 * by_us.condition());
  EXPECT_EQ(f->condition_beyond(1e300), 0);
  EXPECT_GT(f->condition_beyond(1e-3), 0);
  EXPECT_GT(f->memory_bytes(), 31 * size_of(dtype()));
}

TEST_P(PeerTest, WhatCannotBeFactoredIsToldByName) {
  auto p = problem(20);
  auto empty = p.dense, alike = p.dense, large = p.dense;
  for (std::int64_t j = 0; j < 20; ++j) empty(7, j) = empty(j, 7) = 0;
  EXPECT_NE(
      told_by(Problem(empty, dtype()).sparse, options()).find(peer().hermitian ? "BreakdownError" : "its structural rank is 19 of 20"),
      std::string::npos);
  if (peer().hermitian) {
    auto negative = p.dense;
    negative(4, 4) = -1;
    EXPECT_NE(told_by(Problem(negative, dtype()).sparse, options()).find("not positive definite"), std::string::npos);
    auto one_sided = p.dense;
    one_sided(0, 1) += 0.5;
    EXPECT_NE(told_by(Problem(one_sided, dtype()).sparse, options()).find("not Hermitian"), std::string::npos);
  } else {
    for (std::int64_t i = 0; i < 20; ++i)
      for (std::int64_t j = 0; j < 20; ++j) alike(i, j) = i < 2 ? 1.0 : i == j ? 1.0 : 0.0;
    EXPECT_NE(told_by(Problem(alike, dtype()).sparse, options()).find("InputError: "), std::string::npos);
  }
  large(3, 3) = std::numeric_limits<double>::infinity();
  EXPECT_NE(told_by(Problem(large, dtype()).sparse, options()).find("row 3, column 3 is not finite"), std::string::npos);
  EXPECT_NE(told_by(la::Csr(dtype(), 2, 3, 0), options()).find("ShapeError: "), std::string::npos);
  auto small = options();
  small.memory_limit = 100;
  EXPECT_NE(told_by(p.sparse, small).find(peer().predicts ? "are allowed" : "does not say before how much memory"), std::string::npos);
}

TEST(Foreign, EmptyMatricesHaveFactors) {
  for (auto const& p : peers) {
    auto const told = told_by(la::Csr(Dtype::float64, 0, 0, 0), options_of(p));
    EXPECT_TRUE(told.empty() || told.starts_with("UnsupportedError")) << told;
  }
}

TEST(Foreign, DtypesThatAPeerDoesNotHaveAreRefused) {
  for (auto const& p : peers)
    for (auto const dtype : all_dtypes) {
      auto const told = error_of([&] { foreign::require_offered(options_of(p), dtype); });
      bool const has = p.single || real_of(dtype) == Dtype::float64;
      EXPECT_EQ(told.empty(), has) << p.name << ", " << told;
      if (!has) {
        EXPECT_NE(told.find("takes float64 and complex128"), std::string::npos);
      }
    }
}

/// In a run with the variables set (CMakeLists.txt).
TEST(Foreign, AMissingLibraryIsToldWithItsPackage) {
  if (!says_none(peers[0])) GTEST_SKIP() << "the variables name no file that is not there";
  for (auto const& p : peers) {
    auto const told = told_by(problem_for(p.hermitian, 3, Dtype::float64).sparse, options_of(p));
    EXPECT_TRUE(told.starts_with("UnsupportedError")) << told;
    for (char const* const part : {p.name, p.variable, " is none", "Debian"}) EXPECT_NE(told.find(part), std::string::npos) << told;
  }
}

TEST(Foreign, TakenTrianglesSolve) {
  for (auto const dtype : all_dtypes)
    for (std::int64_t const n : {0, 1, 2, 30}) {
      auto const p = problem_for(false, n, dtype, unsigned(n) + 3);
      FactorOptions options;
      options.equilibrate = false;
      Factors const f(p.sparse, options);
      auto const made = f.explicit_factors();
      std::vector<std::int32_t> perm_r(made->rows.size()), perm_c(perm_r);
      for (std::size_t k = 0; k < made->rows.size(); ++k) {
        perm_r[std::size_t(made->rows[k])] = std::int32_t(k);
        perm_c[std::size_t(made->columns[k])] = std::int32_t(k);
      }
      foreign::TakenFactors const taken(la::transpose(made->L), made->U, perm_r, perm_c, made->row_scale);
      for (char const trans : {'N', 'T', 'C'})
        for (std::int64_t const k : {1, 9}) {
          auto const b = random(n, k, is_complex(dtype), 5);
          with_dtype(dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            std::vector<T> x, y;
            for (std::int64_t i = 0; i < n; ++i)
              for (std::int64_t c = 0; c < k; ++c) x.push_back(from_complex<T>(b(i, c)));
            y = x;
            taken.solve(trans, k, x.data());
            f.solve(trans, k, y.data());
            for (std::size_t i = 0; i < x.size(); ++i)
              EXPECT_LE(std::abs(to_complex(x[i]) - to_complex(y[i])), 1e3 * epsilon_of(dtype) * (1 + std::abs(to_complex(y[i]))));
          });
        }
      auto const d = taken.determinant(), same = f.determinant();
      EXPECT_NEAR(d.re, same.re, 1e3 * epsilon_of(dtype));
      EXPECT_NEAR(d.im, same.im, 1e3 * epsilon_of(dtype));
      EXPECT_NEAR(d.log, same.log, 1e3 * epsilon_of(dtype) * std::max(1.0, std::abs(same.log)));
      if (n > 2) {
        auto upside_down = perm_r;
        upside_down[0] = upside_down[1];
        EXPECT_NE(error_of([&] { foreign::TakenFactors(la::transpose(made->L), made->U, upside_down, perm_c, made->row_scale); }), "");
        EXPECT_NE(error_of([&] { foreign::TakenFactors(made->L, made->U, perm_r, perm_c, made->row_scale); }).find("not triangular"),
                  std::string::npos);
      }
    }
}
