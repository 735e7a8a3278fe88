// Every preconditioner against a dense one that is made by the book.
#include "asterism/precond/preconditioner.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "harness/bare.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using std::int64_t;

namespace {

/// Rows and columns [begin, end) of a.
Dense part(Dense const& a, int64_t begin, int64_t end) {
  Dense out(end - begin, end - begin);
  for (auto i = begin; i < end; ++i)
    for (auto j = begin; j < end; ++j) out(i - begin, j - begin) = a(i, j);
  return out;
}

/// M that is made of each rank's diagonal block alone.
template <class F>
Dense by_blocks(Dense const& a, la::Layout const& layout, F const& of_block) {
  Dense out(a.rows(), a.cols());
  for (std::size_t r = 0; r + 1 < layout.offsets().size(); ++r) {
    auto const begin = layout.offsets()[r], end = layout.offsets()[r + 1];
    auto const m = of_block(part(a, begin, end));
    for (auto i = begin; i < end; ++i)
      for (auto j = begin; j < end; ++j) out(i, j) = m(i - begin, j - begin);
  }
  return out;
}

Dense diagonal_inverse(Dense const& a, std::function<Value(int64_t)> const& of) {
  auto m = Dense::identity(a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) m(i, i) = 1.0 / of(i);
  return m;
}

Dense sor(Dense const& a, double omega, int sweeps, bool symmetric) {
  auto const n = a.rows();
  Dense z(n, n);
  auto const relax = [&](int64_t i) {
    for (int64_t c = 0; c < n; ++c) {
      Value s = i == c ? 1 : 0;
      for (int64_t j = 0; j < n; ++j) s -= j == i ? Value(0) : a(i, j) * z(j, c);
      z(i, c) = (1 - omega) * z(i, c) + omega * s / a(i, i);
    }
  };
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int64_t i = 0; i < n; ++i) relax(i);
    for (int64_t i = n; symmetric && i-- > 0;) relax(i);
  }
  return z;
}

/// (L U)^-1 with fill up to a level: row by row, entries above it dropped.
Dense ilu(Dense a, int most) {
  auto const n = a.rows();
  int const never = std::numeric_limits<int>::max() / 4;
  std::vector<int> level(std::size_t(n * n), never);
  auto const at = [&](int64_t i, int64_t j) -> int& { return level[std::size_t(i * n + j)]; };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i == j || a(i, j) != Value(0)) at(i, j) = 0;
  for (int64_t i = 0; i < n; ++i)  // which places, then what is there
    for (int64_t k = 0; k < i; ++k)
      for (int64_t j = k + 1; j < n && at(i, k) <= most; ++j)
        at(i, j) = std::min(at(i, j), at(k, j) <= most ? at(i, k) + at(k, j) + 1 : never);
  auto lower = Dense::identity(n), upper = a;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < i; ++k) {
      if (at(i, k) > most) continue;
      lower(i, k) = upper(i, k) / upper(k, k);
      upper(i, k) = 0;
      for (int64_t j = k + 1; j < n; ++j)
        if (at(k, j) <= most && at(i, j) <= most) upper(i, j) -= lower(i, k) * upper(k, j);
    }
  return inverse(lower * upper);
}

/// (L L^H)^-1 without fill.
Dense icc(Dense const& a) {
  auto const n = a.rows();
  Dense l(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      if (a(i, j) == Value(0)) continue;
      auto s = a(i, j);
      for (int64_t k = 0; k < j; ++k) s -= l(i, k) * std::conj(l(j, k));
      l(i, j) = i == j ? std::sqrt(s.real()) : s / l(j, j);
    }
  return inverse(l * adjoint(l));
}

/// Sum of the inverses of each rank's rows with those within `overlap` steps along the entries; restricted: of its own rows alone.
Dense schwarz(Dense const& a, la::Layout const& layout, int overlap, bool restricted) {
  Dense out(a.rows(), a.cols());
  for (std::size_t r = 0; r + 1 < layout.offsets().size(); ++r) {
    std::set<int64_t> reached;
    for (auto i = layout.offsets()[r]; i < layout.offsets()[r + 1]; ++i) reached.insert(i);
    for (int s = 0; s < overlap; ++s)
      for (auto const i : std::set<int64_t>(reached))
        for (int64_t j = 0; j < a.cols(); ++j)
          if (a(i, j) != Value(0)) reached.insert(j);
    std::vector<int64_t> const rows(reached.begin(), reached.end());
    auto const n = int64_t(rows.size());
    Dense block(n, n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) block(i, j) = a(rows[std::size_t(i)], rows[std::size_t(j)]);
    auto const m = inverse(block);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        auto const row = rows[std::size_t(i)];
        bool const own = row >= layout.offsets()[r] && row < layout.offsets()[r + 1];
        if (own || !restricted) out(row, rows[std::size_t(j)]) += m(i, j);
      }
  }
  return out;
}

/// The largest |x| of which A D^-1's rows say that it bounds the spectrum.
double largest_row_sum(Dense const& a) {
  double most = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < a.cols(); ++j) sum += std::abs(a(i, j) / a(i, i));
    most = std::max(most, sum);
  }
  return most;
}

using Oracle = std::function<Dense(Dense const&, la::Layout const&)>;
struct Row {
  std::string options;  ///< after -pc_type
  Oracle oracle;
  bool positive = false;   ///< made for Hermitian positive definite matrices alone
  bool transposes = true;  ///< has a transpose whatever the matrix
  bool symmetric = true;   ///< M is Hermitian where A is
};

Oracle of_blocks(std::function<Dense(Dense const&)> f) {
  return [f](Dense const& a, la::Layout const& layout) { return by_blocks(a, layout, f); };
}

/// A row for each preconditioner and each of its variants; amg, which has no closed form, has tests of its own.
std::vector<Row> const& table() {
  auto const exact = of_blocks([](Dense const& a) { return inverse(a); });
  auto const sums = [](Dense const& a, bool largest) {
    return diagonal_inverse(a, [&a, largest](int64_t i) {
      double sum = 0, most = 0;
      for (int64_t j = 0; j < a.cols(); ++j) sum += std::abs(a(i, j)), most = std::max(most, std::abs(a(i, j)));
      return Value(largest ? most : sum);
    });
  };
  static std::vector<Row> const rows = {
      {"none", [](Dense const& a, la::Layout const&) { return Dense::identity(a.rows()); }},
      {"jacobi", [](Dense const& a, la::Layout const&) { return diagonal_inverse(a, [&](int64_t i) { return a(i, i); }); }},
      {"jacobi -pc_jacobi_type rowl1", [sums](Dense const& a, la::Layout const&) { return sums(a, false); }},
      {"jacobi -pc_jacobi_type rowmax", [sums](Dense const& a, la::Layout const&) { return sums(a, true); }},
      {"chebyshev",
       [](Dense const& a, la::Layout const&) {
         return chebyshev(a, diagonal_inverse(a, [&](int64_t i) { return a(i, i); }), largest_row_sum(a), 4, 30);
       },
       true},
      {"chebyshev -pc_chebyshev_degree 1 -pc_chebyshev_ratio 9",
       [](Dense const& a, la::Layout const&) {
         return chebyshev(a, diagonal_inverse(a, [&](int64_t i) { return a(i, i); }), largest_row_sum(a), 1, 9);
       },
       true},
      {"sor", of_blocks([](Dense const& a) { return sor(a, 1, 1, true); })},
      {"sor -pc_sor_order levels", of_blocks([](Dense const& a) { return sor(a, 1, 1, true); })},
      {"sor -pc_sor_omega 1.3 -pc_sor_its 3", of_blocks([](Dense const& a) { return sor(a, 1.3, 3, true); })},
      {"sor -pc_sor_omega 0.7 -pc_sor_symmetric false", of_blocks([](Dense const& a) { return sor(a, 0.7, 1, false); }), false, true,
       false},
      {"ilu", of_blocks([](Dense const& a) { return ilu(a, 0); })},
      {"ilu -pc_factor_order levels", of_blocks([](Dense const& a) { return ilu(a, 0); })},
      {"ilu -pc_factor_levels 1", of_blocks([](Dense const& a) { return ilu(a, 1); })},
      {"ilu -pc_factor_levels 2", of_blocks([](Dense const& a) { return ilu(a, 2); })},
      {"ilu -pc_factor_levels 100", exact},
      {"ilut -pc_ilut_drop 0 -pc_ilut_fill 1e6", exact, false, true, false},
      {"ilut -pc_ilut_drop 0 -pc_ilut_fill 1e6 -pc_factor_matching true", exact, false, true, false},
      {"ilut -pc_ilut_drop 0 -pc_ilut_fill 1e6 -pc_factor_mat_ordering_type rcm -pc_ilut_pivoting 1", exact, false, true, false},
      {"icc", of_blocks(icc), true},
      {"icc -pc_factor_order levels", of_blocks(icc), true},
      {"bjacobi", of_blocks([](Dense const& a) { return ilu(a, 0); })},
      {"bjacobi -sub_pc_type lu", exact},
      {"bjacobi -sub_pc_type sor -sub_pc_sor_omega 1.2", of_blocks([](Dense const& a) { return sor(a, 1.2, 1, true); })},
      {"asm -sub_pc_type lu", [](Dense const& a, la::Layout const& l) { return schwarz(a, l, 1, true); }, false, true, false},
      {"asm -sub_pc_type lu -pc_asm_overlap 0 -pc_asm_type basic",
       [](Dense const& a, la::Layout const& l) { return schwarz(a, l, 0, false); }},
      {"asm -sub_pc_type lu -pc_asm_overlap 2 -pc_asm_type basic",
       [](Dense const& a, la::Layout const& l) { return schwarz(a, l, 2, false); }},
      {"lu", [](Dense const& a, la::Layout const&) { return inverse(a); }},
      {"lu -pc_lu_type sparse", [](Dense const& a, la::Layout const&) { return inverse(a); }},
      {"cholesky", [](Dense const& a, la::Layout const&) { return inverse(a); }, true},
      {"ksp -ksp_ksp_type richardson -ksp_ksp_richardson_scale 0.7 -ksp_ksp_max_it 3 -ksp_pc_type jacobi",
       [](Dense const& a, la::Layout const&) {
         return richardson(a, Value(0.7) * diagonal_inverse(a, [&](int64_t i) { return a(i, i); }), 3);
       },
       false, true, true},
      {"ksp -ksp_ksp_type richardson -ksp_ksp_max_it 2 -ksp_pc_type ilu",
       [](Dense const& a, la::Layout const& l) {
         return richardson(a, by_blocks(a, l, [](Dense const& block) { return ilu(block, 0); }), 2);
       }},
      {"ksp -ksp_ksp_type preonly -ksp_ksp_max_it 1 -ksp_pc_type lu", [](Dense const& a, la::Layout const&) { return inverse(a); }},
  };
  return rows;
}

precond::PreconditionerPtr made(la::Matrix const& A, std::string const& options) {
  return solver(A, "-ksp_type gmres -pc_dtype float64 -pc_type " + options).preconditioner();
}

/// tridiag(-1, 4, -1) with other couplings far away: the largest row sum of D^-1 A is below 2.2, and so what chebyshev takes.
Dense weakly_coupled(int64_t n, bool complex) {
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = 4 + 0.1 * double(i % 3);
    if (i + 1 < n) a(i, i + 1) = complex ? Value(-0.6, 0.8) : -1, a(i + 1, i) = std::conj(a(i, i + 1));
    if (i + 7 < n && i % 2 == 0) a(i, i + 7) = -0.5, a(i + 7, i) = -0.5;
  }
  return a;
}

void check(Row const& row, Dense const& a, la::Layout const& layout, Dtype dtype, bool hermitian) {
  auto const A = to_sparse(a, layout, layout, dtype);
  auto const M = made(A, row.options);
  auto const want = row.oracle(a, layout);
  auto const what = format("{}, {}, {} rows, {}", row.options, name_of(dtype), a.rows(), hermitian ? "Hermitian" : "general");
  double const size = tolerance(dtype) * norm(want);
  auto const got = columns_of(*M);  // all columns at once
  EXPECT_LT(norm(got - want), size) << what;
  EXPECT_EQ(M->symmetric(), row.symmetric) << what;
  if (hermitian && row.symmetric) {
    EXPECT_LT(norm(got - adjoint(got)), size) << what;
  }
  // one column by itself
  auto const x = random(a.rows(), 1, is_complex(dtype), 17);
  la::Vector y(layout, dtype);
  M->apply(to_vector(x, layout, dtype), y);
  EXPECT_LT(norm(to_dense(y) - want * x), 10 * tolerance(dtype) * norm(want * x)) << what;
  for (bool const conjugate : {false, true}) {
    auto const of = [&] { EXPECT_LT(norm(columns_of_transpose(*M, conjugate) - transposed(want, conjugate)), size) << what << conjugate; };
    if (row.transposes || (hermitian && (conjugate || !is_complex(dtype)))) of();
    else EXPECT_NE(error_of([&] { columns_of_transpose(*M, conjugate); }).find("has no transpose"), std::string::npos) << what;
  }
}

}  // namespace

TEST(Preconditioners, EachHasARow) {
  std::set<std::string> rows = {"amg", "gamg", "gmg"};  // multigrid_test.cpp, gmg_test.cpp
  for (auto const& row : table()) rows.insert(row.options.substr(0, row.options.find(' ')));
  for (auto const& [name, entry] : precond::preconditioners()) EXPECT_TRUE(rows.count(name)) << name;
}

TEST(Preconditioners, AreThoseOfTheBook) {
  for (auto const& row : table())
    for (auto const dtype : all_dtypes)
      for (bool const even : {true, false}) {
        auto const layout = even ? la::Layout::even(world(), 26) : uneven(world(), 26);
        check(row, weakly_coupled(26, is_complex(dtype)), layout, dtype, true);
        if (!row.positive && even) check(row, sparse_general(26, is_complex(dtype), 3), layout, dtype, false);
      }
  for (auto const& row : table()) check(row, Value(3) * Dense::identity(1), uneven(world(), 1), Dtype::float64, true);
}

TEST(Preconditioners, WithoutAMatrixThoseThatNeedNone) {
  for (auto const dtype : all_dtypes) {
    auto const layout = uneven(world(), 60);
    auto const a = weakly_coupled(60, is_complex(dtype));
    auto const A = std::make_shared<Bare>(to_sparse(a, layout, layout, dtype));
    auto const b = to_vector(random(60, 1, is_complex(dtype), 4), layout, dtype);
    std::int64_t plain = 0;
    for (std::string const pc : {"none", "jacobi", "chebyshev", "ksp -ksp_ksp_type richardson -ksp_ksp_max_it 2 -ksp_pc_type jacobi"}) {
      Options options;
      options.parse("-ksp_type cg -ksp_rtol 1e-5 -pc_type " + pc, OptionLayer::call, "test");
      solve::Solver s(A, {}, nullptr, options);
      la::Vector x(layout, dtype);
      fill(x, 0.0);
      auto const info = s.solve(b, x);
      EXPECT_TRUE(info.converged) << pc << " " << info.why;
      if (pc == "none") plain = info.iterations;
      if (pc != "none" && pc != "jacobi") {
        EXPECT_LT(info.iterations, plain) << pc;
      }
    }
    Options options;
    options.parse("-pc_type ilu", OptionLayer::call, "test");
    auto const text = error_of([&] { solve::Solver(A, {}, nullptr, options); });
    EXPECT_NE(text.find("those that need no entries: chebyshev, gmg, jacobi, ksp, none"), std::string::npos) << text;
    Options by_rows;
    by_rows.parse("-pc_type jacobi -pc_jacobi_type rowl1", OptionLayer::call, "test");
    EXPECT_NE(error_of([&] { solve::Solver(A, {}, nullptr, by_rows); }).find("needs the entries"), std::string::npos);
  }
}

TEST(Preconditioners, IlutKeepsMoreAndIsNearer) {
  auto const layout = la::Layout::even(world(), 60);
  auto const a = sparse_general(60, false, 3);
  auto const A = to_sparse(a, layout, layout, Dtype::float64);
  auto const exact = by_blocks(a, layout, [](Dense const& block) { return inverse(block); });
  double last = 1e300;
  for (std::string const drop : {"0.1", "0.01", "0.0001", "1e-7"}) {
    auto const error = norm(columns_of(*made(A, "ilut -pc_ilut_fill 1e6 -pc_ilut_drop " + drop)) - exact) / norm(exact);
    EXPECT_LT(error, 10 * std::stod(drop)) << drop;
    EXPECT_LT(error, last) << drop;
    last = error;
  }
}

TEST(Preconditioners, ZeroDiagonalsAreErrorsOnEveryRank) {
  auto a = sparse_positive(20, false, 3);
  auto const layout = la::Layout::even(world(), 20);
  for (int64_t const row : {0, 19}) {
    auto zero = a;
    for (int64_t j = 0; j < 20; ++j) zero(row, j) = zero(j, row) = 0;
    if (row == 0) zero(0, 1) = zero(1, 0) = 1;
    else zero(19, 18) = zero(18, 19) = 1e-30;
    zero(row, row) = 0;
    auto const A = to_sparse(zero, layout, layout, Dtype::float64);
    for (std::string const pc : {"jacobi", "sor", "chebyshev"})
      EXPECT_NE(error_of([&] { made(A, pc + " -ksp_check_input false"); }).find(format("row {} is", row)), std::string::npos) << pc;
    for (std::string const pc :
         {"ilu -pc_factor_matching false", "icc", "ilut -pc_factor_matching false -pc_ilut_pivoting 0 -pc_factor_shift_type none",
          "bjacobi -sub_pc_factor_matching false"}) {
      if (row == 19 && pc.starts_with("ilut")) continue;  // drops what is so small
      EXPECT_NE(error_of([&] { made(A, pc + " -ksp_check_input false"); }).find("pivot of row"), std::string::npos) << pc << " " << row;
    }
    // a shift takes them
    for (std::string const pc : {"ilu", "icc"})
      EXPECT_EQ(error_of([&] { made(A, pc + " -pc_factor_shift_type nonzero -ksp_check_input false"); }), "") << pc;
  }
  Dense singular(20, 20);
  for (int64_t i = 1; i < 20; ++i) singular(i, i) = 1;
  auto const A = to_sparse(singular, layout, layout, Dtype::float64);
  EXPECT_NE(error_of([&] { made(A, "lu -ksp_check_input false"); }).find("singular"), std::string::npos);
}

TEST(Preconditioners, NewValuesAtTheSamePlaces) {
  // an update makes what a new one would be
  auto const layout = uneven(world(), 26);
  auto const first = weakly_coupled(26, true);
  auto second = first;
  for (int64_t i = 0; i < 26; ++i)
    for (int64_t j = 0; j < 26; ++j) second(i, j) *= 1 + 0.01 * double((i * j) % 5);
  auto const A = to_sparse(first, layout, layout, Dtype::complex128), B = to_sparse(second, layout, layout, Dtype::complex128);
  for (auto const& row : table()) {
    auto s = solver(A, "-ksp_type gmres -pc_dtype float64 -pc_type " + row.options);
    s.update(B);
    EXPECT_LT(norm(columns_of(*s.preconditioner()) - columns_of(*made(B, row.options))), 1e-13 * norm(inverse(second))) << row.options;
  }
}
