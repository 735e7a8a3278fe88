#include "asterism/direct/multifrontal/factors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "asterism/base/error.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/direct/symbolic/symbolic.hpp"
#include "harness/repeats.hpp"

using namespace asterism;
using namespace asterism::direct;
using asterism::test::sanitized;

namespace {

using Value = std::complex<double>;

/// Of finite numbers: std::complex looks for infinities in each product, which takes most of the time.
Value times(Value a, Value b) { return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()}; }
struct Dense {
  std::int32_t n = 0;
  std::vector<Value> a;
  explicit Dense(std::int32_t rows) : n(rows), a(std::size_t(rows) * std::size_t(rows)) {}
  Value& at(std::int32_t i, std::int32_t j) { return a[std::size_t(i) * std::size_t(n) + std::size_t(j)]; }
  Value at(std::int32_t i, std::int32_t j) const { return a[std::size_t(i) * std::size_t(n) + std::size_t(j)]; }
};

template <class T>
la::Csr csr_of(Dense const& d) {
  std::int64_t nnz = 0;
  for (auto const v : d.a) nnz += v != 0.0;
  la::Csr out(dtype_v<T>, d.n, d.n, nnz);
  std::int64_t at = 0;
  out.row_offsets()[0] = 0;
  for (std::int32_t i = 0; i < d.n; ++i) {
    for (std::int32_t j = 0; j < d.n; ++j)
      if (d.at(i, j) != 0.0) {
        out.columns.as<std::int32_t>()[at] = j;
        out.values.as<T>()[at++] = from_complex<T>(d.at(i, j));
      }
    out.row_offsets()[std::size_t(i) + 1] = at;
  }
  return out;
}
template <class T>
Dense dense_of(la::Csr const& a) {
  Dense d(a.rows);
  for (std::int32_t i = 0; i < a.rows; ++i)
    for (auto p = a.row_offsets()[std::size_t(i)]; p < a.row_offsets()[std::size_t(i) + 1]; ++p)
      d.at(i, a.column_indices()[std::size_t(p)]) += to_complex(a.entries<T>()[std::size_t(p)]);
  return d;
}

enum class Form { general, zero_diagonal, definite, indefinite, saddle };

/// Values that the dtype holds, so that the oracle is exact.
template <class T>
Dense random_matrix(std::mt19937& random, std::int32_t n, double density, Form form) {
  std::uniform_real_distribution<double> number(-1, 1), chance(0, 1);
  auto const value = [&] { return to_complex(from_complex<T>(Value(number(random), is_complex_v<T> ? number(random) : 0.0))); };
  Dense d(n);
  if (form == Form::general || form == Form::zero_diagonal) {
    std::vector<std::int32_t> p(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) p[std::size_t(i)] = i;
    if (form == Form::zero_diagonal) std::shuffle(p.begin(), p.end(), random);
    for (std::int32_t i = 0; i < n; ++i) {
      for (std::int32_t j = 0; j < n; ++j)
        if (chance(random) < density && i != j) d.at(i, j) = value();
      d.at(i, p[std::size_t(i)]) = 1.0 + number(random) / 2;
    }
    return d;
  }
  for (std::int32_t i = 0; i < n; ++i)
    for (std::int32_t j = 0; j < i; ++j)
      if (chance(random) < density) d.at(i, j) = value(), d.at(j, i) = std::conj(d.at(i, j));
  for (std::int32_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int32_t j = 0; j < n; ++j) sum += std::abs(d.at(i, j));
    bool const lower_half = i >= n - n / 3;
    d.at(i, i) = form == Form::definite     ? double(float(sum + 0.5))
                 : form == Form::indefinite ? double(float(number(random)))
                 : lower_half               ? 0.0
                                            : 2.0;
  }
  if (form == Form::saddle)
    for (std::int32_t i = n - n / 3; i < n; ++i) {
      for (auto j = n - n / 3; j < n; ++j) d.at(i, j) = 0;
      d.at(i, i - (n - n / 3)) = d.at(i - (n - n / 3), i) = 1.5;
    }
  return d;
}

/// max_i |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, in double.
template <class T>
double backward_error(Dense const& a, char trans, std::int64_t k, std::vector<T> const& b, std::vector<T> const& x) {
  double worst = 0;
  for (std::int64_t c = 0; c < k; ++c)
    for (std::int32_t i = 0; i < a.n; ++i) {
      Value r = to_complex(b[std::size_t(i * k + c)]);
      double size = std::abs(r);
      for (std::int32_t j = 0; j < a.n; ++j) {
        auto const v = trans == 'N' ? a.at(i, j) : trans == 'T' ? a.at(j, i) : std::conj(a.at(j, i));
        auto const xj = to_complex(x[std::size_t(j * k + c)]);
        r -= v * xj;
        size += std::abs(v) * std::abs(xj);
      }
      if (!(std::abs(r) <= 1e300)) return 1e300;
      if (size > 0) worst = std::max(worst, std::abs(r) / size);
    }
  return worst;
}

/// The same beside norms: what a stable factorisation keeps small without refinement.
template <class T>
double norm_error(Dense const& a, char trans, std::int64_t k, std::vector<T> const& b, std::vector<T> const& x) {
  double worst = 0, norm = 0;
  for (auto const v : a.a) norm = std::max(norm, std::abs(v));
  for (std::int64_t c = 0; c < k; ++c) {
    double largest = 0, of_x = 0;
    for (std::int32_t i = 0; i < a.n; ++i) {
      Value r = to_complex(b[std::size_t(i * k + c)]);
      for (std::int32_t j = 0; j < a.n; ++j)
        r -= times(trans == 'N' ? a.at(i, j) : trans == 'T' ? a.at(j, i) : std::conj(a.at(j, i)), to_complex(x[std::size_t(j * k + c)]));
      if (!(std::abs(r) <= 1e300)) return 1e300;
      largest = std::max(largest, std::abs(r));
      of_x = std::max(of_x, std::abs(to_complex(x[std::size_t(i * k + c)])));
    }
    if (largest > 0) worst = std::max(worst, largest / (norm * of_x));
  }
  return worst;
}

template <class T>
void check_solves(Factors const& f, Dense const& a, std::mt19937& random, int sample, std::string const& what) {
  std::uniform_real_distribution<double> number(-1, 1);
  for (char const trans : {'N', 'T', 'C'})
    for (std::int64_t const k : {1, 2, 3, 7, 8, 13}) {
      if ((sample + k + (trans == 'T')) % 2 != 0) continue;  // each form and number of columns in every second sample
      std::vector<T> b(std::size_t(a.n) * std::size_t(k));
      for (auto& v : b) v = from_complex<T>(Value(number(random), is_complex_v<T> ? number(random) : 0.0));
      auto x = b;
      f.solve(trans, k, x.data());
      EXPECT_LT(norm_error(a, trans, k, b, x), 200 * epsilon_of(dtype_v<T>) * std::max(1.0, f.info().growth))
          << what << " " << trans << " " << k;
    }
}

template <class T>
void check_product(Factors const& f, Dense const& a, std::string const& what) {
  auto const e = *f.explicit_factors();
  auto const L = dense_of<T>(e.L), U = dense_of<T>(e.U);
  double largest = 0, worst = 0;
  for (std::int32_t i = 0; i < a.n; ++i)
    for (std::int32_t j = 0; j < a.n; ++j) {
      EXPECT_TRUE(j <= i || L.at(i, j) == 0.0);
      EXPECT_TRUE(i <= j + (f.options().kind == FactorKind::hermitian) || U.at(i, j) == 0.0);
      auto const r = e.rows[std::size_t(i)], c = e.columns[std::size_t(j)];
      Value product = 0;
      double size = 0;
      for (std::int32_t p = 0; p <= i; ++p) {
        auto const term = times(L.at(i, p), U.at(p, j));
        product += term, size += std::abs(term.real()) + std::abs(term.imag());
      }
      worst = std::max(worst, std::abs(product - e.row_scale[std::size_t(r)] * a.at(r, c) * e.column_scale[std::size_t(c)]));
      largest = std::max(largest, size);
    }
  EXPECT_LE(worst, 35 * epsilon_of(dtype_v<T>) * largest) << what;
}

template <class T>
class FactorsOf : public ::testing::Test {};
using Dtypes = ::testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(FactorsOf, Dtypes);

TYPED_TEST(FactorsOf, RandomMatricesOfAllForms) {
  using T = TypeParam;
  std::mt19937 random(7);
  std::int64_t delayed = 0, two = 0;
  for (int sample = 0; sample < 60; sample += sanitized ? 5 : 1) {
    auto const n = std::int32_t(sample < 6 ? sample : 1 + random() % 90);
    double const density = sample % 7 == 0 ? 1.0 : 4.0 / std::max(1, n);
    for (auto const form : {Form::general, Form::zero_diagonal, Form::definite, Form::indefinite, Form::saddle}) {
      auto const a = random_matrix<T>(random, n, density, form);
      for (auto const kind : {FactorKind::lu, FactorKind::cholesky, FactorKind::hermitian}) {
        if (kind != FactorKind::lu && (form == Form::general || form == Form::zero_diagonal)) continue;
        if (kind == FactorKind::cholesky && form != Form::definite) continue;
        FactorOptions options;
        options.kind = kind;
        options.matching = sample % 3 == 0 ? Matching::no : Matching::automatic;
        options.ordering = sample % 4 == 0 ? "natural" : sample % 4 == 1 ? "amd" : sample % 4 == 2 ? "rcm" : "auto";
        auto const what = format("n {} form {} kind {} sample {}", n, int(form), int(kind), sample);
        std::optional<Factors> f;
        try {
          f.emplace(csr_of<T>(a), options);
        } catch (Error const& e) {
          EXPECT_NE(std::string(e.what()).find("structurally singular"), std::string::npos) << what << e.what();
          continue;
        }
        if (f->info().replaced > 0 || f->condition() > 1e-2 / epsilon_of(dtype_v<T>)) continue;  // as good as singular
        delayed += f->info().delayed;
        two += f->info().two_by_two;
        check_solves<T>(*f, a, random, sample, what);
        check_product<T>(*f, a, what);
      }
    }
  }
  EXPECT_GT(delayed, sanitized ? 0 : 20);
  EXPECT_GT(two, sanitized ? 0 : 5);
}

/// -u_xx - u_yy - u_zz + convection on n^3 points.
template <class T>
la::Csr grid(std::int32_t n, double convection) {
  auto const rows = n * n * n;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  std::vector<double> val;
  std::int32_t const step[3] = {n * n, n, 1};
  for (std::int32_t i = 0; i < rows; ++i) {
    std::int32_t const at[3] = {i / (n * n), i / n % n, i % n};
    for (int d = 0; d < 3; ++d)
      if (at[d] > 0) col.push_back(i - step[d]), val.push_back(-1 - convection);
    col.push_back(i), val.push_back(6);
    for (int d = 2; d >= 0; --d)
      if (at[d] + 1 < n) col.push_back(i + step[d]), val.push_back(-1 + convection);
    ptr.push_back(std::int64_t(col.size()));
  }
  la::Csr out(dtype_v<T>, rows, rows, std::int64_t(col.size()));
  std::copy(ptr.begin(), ptr.end(), out.row_offsets().begin());
  std::copy(col.begin(), col.end(), out.column_indices().begin());
  for (std::size_t p = 0; p < val.size(); ++p) out.entries<T>()[p] = from_complex<T>(val[p]);
  return out;
}

TYPED_TEST(FactorsOf, LargeFrontsAndTheSameBitsWithThreads) {
  using T = TypeParam;
  auto const threads = device::host::team_size();
  for (auto const kind : {FactorKind::lu, FactorKind::cholesky, FactorKind::hermitian}) {
    FactorOptions options;
    options.kind = kind;
    options.ordering = "amd";
    la::Csr const a = grid<T>(14, kind == FactorKind::lu ? 0.3 : 0.0);
    std::vector<T> first;
    for (int const team : {1, 3}) {
      device::host::set_team_size(team);
      Factors const f(a, options);
      std::vector<T> x(std::size_t(a.rows), T(1));
      f.solve('N', 1, x.data());
      EXPECT_EQ(f.info().delayed, 0);
      EXPECT_EQ(f.info().negative, 0);
      EXPECT_GE(f.info().entries, f.info().predicted.entries);
      double worst = 0;
      for (std::int32_t i = 0; i < a.rows; ++i) {
        Value r = 1;
        for (auto p = a.row_offsets()[std::size_t(i)]; p < a.row_offsets()[std::size_t(i) + 1]; ++p)
          r -= to_complex(a.entries<T>()[std::size_t(p)]) * to_complex(x[std::size_t(a.column_indices()[std::size_t(p)])]);
        worst = std::max(worst, std::abs(r));
      }
      EXPECT_LT(worst, 1000 * epsilon_of(dtype_v<T>));
      if (team == 1) first = x;
      else EXPECT_TRUE(std::equal(x.begin(), x.end(), first.begin()));
    }
  }
  device::host::set_team_size(threads);
}

TYPED_TEST(FactorsOf, RowsAndColumnsOfZerosAreNotKept) {
  using T = TypeParam;
  // nearly triangular: of most pairs of entries across the diagonal one is zero
  auto const threads = device::host::team_size();
  la::Csr a = grid<T>(28, 0.0);  // enough for subtrees in solves
  std::vector<std::int64_t> ptr{0};
  std::int64_t to = 0;
  for (std::int32_t i = 0; i < a.rows; ++i) {
    for (auto p = a.row_offsets()[std::size_t(i)]; p < a.row_offsets()[std::size_t(i) + 1]; ++p) {
      auto const j = a.column_indices()[std::size_t(p)];
      if (j > i && i % 97 != 0) continue;
      a.columns.as<std::int32_t>()[to] = j;
      a.values.as<T>()[to++] = a.entries<T>()[std::size_t(p)];
    }
    ptr.push_back(to);
  }
  std::copy(ptr.begin(), ptr.end(), a.row_offsets().begin());
  FactorOptions options;
  options.ordering = "nd";
  options.matching = Matching::no;
  for (int const team : {1, 3}) {
    if (sanitized && (team == 1 || sizeof(T) != 8)) continue;  // double and Complex<float> on threads
    device::host::set_team_size(team);
    Factors const f(a, options);
    EXPECT_LT(f.info().entries, 0.7 * double(f.info().predicted.entries));
    auto const e = *f.explicit_factors();
    EXPECT_LE(e.L.nnz() + e.U.nnz() - a.rows, f.info().entries);
    for (char const trans : {'N', 'T', 'C'})
      for (std::int64_t const k : {1, 3}) {
        std::vector<T> x(std::size_t(a.rows) * std::size_t(k), T(1)), r(x);
        f.solve(trans, k, x.data());
        for (std::int32_t i = 0; i < a.rows; ++i)
          for (auto p = a.row_offsets()[std::size_t(i)]; p < a.row_offsets()[std::size_t(i) + 1]; ++p) {
            auto const j = a.column_indices()[std::size_t(p)];
            auto const row = std::size_t(trans == 'N' ? i : j), column = std::size_t(trans == 'N' ? j : i);
            for (std::size_t c = 0; c < std::size_t(k); ++c)
              r[row * std::size_t(k) + c] -= a.entries<T>()[std::size_t(p)] * x[column * std::size_t(k) + c];
          }
        double worst = 0;
        for (auto const v : r) worst = std::max(worst, double(magnitude(v)));
        EXPECT_LT(worst, 1000 * epsilon_of(dtype_v<T>)) << trans << " " << k;
      }
  }
  device::host::set_team_size(threads);
}

TEST(Factors, TheSymbolicPhaseFindsTheFillOfElimination) {
  std::mt19937 random(3);
  for (int sample = 0; sample < 40; ++sample) {
    auto const n = std::int32_t(1 + random() % 60);
    auto const a = csr_of<double>(random_matrix<double>(random, n, 3.0 / n, Form::definite));
    la::Graph const graph(a);
    std::vector<std::int32_t> order(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) order[std::size_t(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    auto const eliminated = [&](std::vector<std::int32_t> const& by) {  // entries of each column, by elimination
      std::vector<std::vector<char>> full(std::size_t(n), std::vector<char>(std::size_t(n), false));
      std::vector<std::int32_t> place(static_cast<std::size_t>(n));
      for (std::int32_t k = 0; k < n; ++k) place[std::size_t(by[std::size_t(k)])] = k;
      for (std::int32_t i = 0; i < n; ++i)
        for (auto const j : graph.of(i)) full[std::size_t(place[std::size_t(i)])][std::size_t(place[std::size_t(j)])] = true;
      for (std::size_t k = 0; k < std::size_t(n); ++k)
        for (auto i = k + 1; i < std::size_t(n); ++i)
          for (auto j = k + 1; full[i][k] && j < std::size_t(n); ++j)
            if (full[k][j] && i != j) full[i][j] = true;
      return full;
    };
    double flops = 0;
    auto const given = eliminated(order);
    for (std::size_t k = 0; k < std::size_t(n); ++k) {
      double count = 1;
      for (auto i = k + 1; i < std::size_t(n); ++i) count += given[i][k];
      flops += count * count;
    }
    EXPECT_EQ(flops_of_order(graph, order), flops);
    auto const s = analyse(graph, order);
    ASSERT_EQ(s.nodes.starts.back(), n);
    auto sorted = s.order;
    std::sort(sorted.begin(), sorted.end());
    for (std::int32_t i = 0; i < n; ++i) ASSERT_EQ(sorted[std::size_t(i)], i);
    auto const full = eliminated(s.order);
    for (std::int32_t k = 0; k < s.nodes.count(); ++k) {
      auto const rows = s.nodes.rows(k);
      auto const end = s.nodes.starts[std::size_t(k) + 1];
      for (auto j = s.nodes.starts[std::size_t(k)]; j < end; ++j)
        for (auto i = end; i < n; ++i)
          EXPECT_TRUE(!full[std::size_t(i)][std::size_t(j)] || std::binary_search(rows.begin(), rows.end(), i));
      if (!rows.empty()) {
        auto const p = s.nodes.parent[std::size_t(k)];
        ASSERT_GT(p, k);
        EXPECT_GE(rows.front(), s.nodes.starts[std::size_t(p)]);
        EXPECT_LT(rows.front(), s.nodes.starts[std::size_t(p) + 1]);
      } else {
        EXPECT_EQ(s.nodes.parent[std::size_t(k)], -1);
      }
    }
  }
}

TEST(Factors, DeterminantInertiaAndCondition) {
  std::mt19937 random(11);
  for (int sample = 0; sample < 30; ++sample) {
    auto const n = std::int32_t(1 + random() % 7);
    for (auto const form : {Form::zero_diagonal, Form::indefinite}) {
      auto a = random_matrix<double>(random, n, 0.7, form);
      // by expansion along rows, exact enough for so few
      std::vector<std::int32_t> p(static_cast<std::size_t>(n));
      for (std::int32_t i = 0; i < n; ++i) p[std::size_t(i)] = i;
      double expected = 0;
      do {
        double term = 1;
        for (std::int32_t i = 0; i < n; ++i) {
          term *= a.at(i, p[std::size_t(i)]).real();
          for (std::int32_t j = 0; j < i; ++j)
            if (p[std::size_t(j)] > p[std::size_t(i)]) term = -term;
        }
        expected += term;
      } while (std::next_permutation(p.begin(), p.end()));
      if (std::abs(expected) < 1e-6) continue;
      for (auto const kind : {FactorKind::lu, FactorKind::hermitian}) {
        if (kind == FactorKind::hermitian && form != Form::indefinite) continue;
        FactorOptions options;
        options.kind = kind;
        Factors const f(csr_of<double>(a), options);
        auto const d = f.determinant();
        EXPECT_NEAR(d.re * std::exp(d.log), expected, 1e-9 * std::max(1.0, std::abs(expected)));
        EXPECT_TRUE(kind == FactorKind::lu || (f.info().negative % 2 == 1) == (expected < 0));
      }
    }
  }
  Dense diagonal(4);
  for (std::int32_t i = 0; i < 4; ++i) diagonal.at(i, i) = i == 3 ? -1e-6 : 1.0;
  FactorOptions options;
  options.kind = FactorKind::hermitian;
  options.equilibrate = false;
  Factors const f(csr_of<double>(diagonal), options);
  EXPECT_EQ(f.info().negative, 1);
  EXPECT_NEAR(f.condition(), 1e6, 1);
}

TEST(Factors, ALargeConditionNumberIsNotOverlooked) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> number(-1, 1);
  for (int sample = 0; sample < 2000; ++sample) {
    auto a = random_matrix<double>(random, 1 + sample % 50, 0.2, Form::general);
    double const small = std::pow(10, -sample % 14);
    for (std::int32_t j = 0; j < a.n && a.n > 1; ++j) a.at(0, j) = a.at(1, j) + small * number(random);  // nearly the same row
    Factors const f(csr_of<double>(a), {});
    if (f.info().replaced > 0) continue;
    EXPECT_EQ(f.condition_beyond(0.5 * f.condition()), f.condition()) << sample;
    EXPECT_EQ(f.condition_beyond(1e6 * double(a.n) * f.condition()), 0) << sample;
  }
}

TEST(Factors, WhatCannotBeFactoredIsToldByName) {
  auto const text_of = [](Dense const& a, FactorOptions const& options = {}) -> std::string {
    try {
      Factors const f(csr_of<double>(a), options);
    } catch (Error const& e) {
      return e.what();
    }
    return {};
  };
  Dense a(3);
  a.at(0, 0) = a.at(2, 1) = a.at(2, 2) = 1;
  EXPECT_NE(text_of(a).find("structural rank is 2 of 3"), std::string::npos) << text_of(a);
  EXPECT_NE(text_of(a).find("Row 1 has no entry"), std::string::npos) << text_of(a);
  a.at(1, 1) = std::nan("");
  EXPECT_NE(text_of(a).find("row 1, column 1 is not finite"), std::string::npos) << text_of(a);
  a.at(1, 1) = -2;
  FactorOptions options;
  options.kind = FactorKind::cholesky;
  EXPECT_NE(text_of(a, options).find("not Hermitian: the entry in row 1, column 2 differs by 1"), std::string::npos) << text_of(a, options);
  a.at(1, 2) = 1;
  EXPECT_NE(text_of(a, options).find("not positive definite: the pivot of row 1"), std::string::npos) << text_of(a, options);
  options = {};
  options.memory_limit = 8;
  EXPECT_NE(text_of(a, options).find("allowed"), std::string::npos) << text_of(a, options);
  // numerically singular: the pivot is replaced and counted
  Dense ones(3);
  for (auto& v : ones.a) v = 1;
  Factors const f(csr_of<double>(ones), {});
  EXPECT_EQ(f.info().replaced, 2);
  EXPECT_TRUE(std::isinf(f.condition()));
}

TEST(Factors, NewValuesKeepTheSymbolicPhaseUntilTheMatchingDoesNotFit) {
  std::mt19937 random(5);
  auto a = random_matrix<double>(random, 40, 0.1, Form::zero_diagonal);
  Factors f(csr_of<double>(a), {});
  ASSERT_TRUE(f.info().matched);
  for (auto& v : a.a) v *= 1.5;
  EXPECT_TRUE(f.update(csr_of<double>(a)));
  for (int const part : {0, 1}) check_solves<double>(f, a, random, part, "update");
  for (std::int32_t i = 0; i < 40; ++i)
    for (std::int32_t j = 0; j < 40; ++j)
      if (std::abs(a.at(i, j)) > 0.75) a.at(i, j) *= 1e-9;
  EXPECT_FALSE(f.update(csr_of<double>(a)));
}

TEST(Factors, EntriesNearTheEndsOfTheRange) {
  std::mt19937 random(9);
  for (auto const form : {Form::general, Form::zero_diagonal, Form::indefinite}) {
    auto a = random_matrix<double>(random, 50, 0.1, form);
    std::vector<double> by(50);
    for (auto& s : by) s = std::exp2(double(std::int64_t(random() % 600)) - 300);
    for (std::int32_t i = 0; i < 50; ++i)
      for (std::int32_t j = 0; j < 50; ++j)
        a.at(i, j) *= form == Form::indefinite ? by[std::size_t(i)] * by[std::size_t(j)] : by[std::size_t(i)];
    FactorOptions options;
    options.kind = form == Form::indefinite ? FactorKind::hermitian : FactorKind::lu;
    Factors const f(csr_of<double>(a), options);
    std::vector<double> b(50);
    for (std::size_t i = 0; i < 50; ++i) b[i] = by[i];
    auto x = b;
    f.solve('N', 1, x.data());
    EXPECT_LT(backward_error(a, 'N', 1, b, x), 1e-11);
  }
}

}  // namespace
