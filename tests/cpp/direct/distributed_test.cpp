#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "asterism/base/error.hpp"
#include "asterism/direct/distributed/distributed_factors.hpp"
#include "asterism/direct/distributed/tree_mapping.hpp"
#include "asterism/direct/symbolic/pairs.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "direct/grids.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::direct;

namespace {

using Value = std::complex<double>;

enum class Form { general, zero_diagonal, definite, indefinite, pairs };

/// The last three are Hermitian. pairs: full blocks on the diagonal, which are coupled to the last one alone; the diagonal is zero, and
/// rows 2 i and 2 i + 1 have a large entry in common.
bool is_hermitian(Form form) { return form >= Form::definite; }

FactorOptions options_for(Form form) {
  FactorOptions out;
  out.kind = !is_hermitian(form) ? FactorKind::lu : form == Form::definite ? FactorKind::cholesky : FactorKind::hermitian;
  return out;
}

/// The same on all ranks: a grid's neighbours, in general with some one-sided entries, and long ones. Values that the dtype holds.
template <class T>
struct Problem {
  std::int64_t n = 0;
  std::vector<Value> dense;  // row-major

  Problem(unsigned seed, std::int64_t nx, std::int64_t ny, Form form) : n(nx * ny), dense(std::size_t(n * n)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    auto const value = [&] { return to_complex(from_complex<T>(Value(number(random), is_complex_v<T> ? number(random) : 0.0))); };
    auto const at = [&](std::int64_t i, std::int64_t j) -> Value& { return dense[std::size_t(i * n + j)]; };
    auto const couple = [&](std::int64_t i, std::int64_t j) {
      if (i == j) return;
      if (is_hermitian(form)) {
        at(i, j) = value();
        at(j, i) = std::conj(at(i, j));
        return;
      }
      if (random() % 5) at(i, j) = value();
      if (random() % 5) at(j, i) = value();
    };
    for (std::int64_t i = 0; form == Form::pairs && i < n; ++i)
      for (std::int64_t j = 0; j < i; ++j)
        if (i / ny == j / ny || i / ny == nx - 1) couple(i, j);
    for (std::int64_t x = 0; x < nx && form != Form::pairs; ++x)
      for (std::int64_t y = 0; y < ny; ++y) {
        if (x + 1 < nx) couple(x * ny + y, (x + 1) * ny + y);
        if (y + 1 < ny) couple(x * ny + y, x * ny + y + 1);
      }
    for (std::int64_t e = 0; e < n / 20 && form != Form::pairs; ++e) couple(std::int64_t(random()) % n, std::int64_t(random()) % n);
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = 1;
      for (std::int64_t j = 0; j < n; ++j) sum += std::abs(at(i, j));
      // the large entries of a matrix with zeros on its diagonal are beside it
      bool const beside = form == Form::zero_diagonal || form == Form::pairs;
      if (form == Form::indefinite && random() % 3 == 0) sum = -sum;
      if (form == Form::pairs) sum = double(4 + i / 2 % 3);
      at(i, beside && (i ^ 1) < n ? i ^ 1 : i) = to_complex(from_complex<T>(Value(sum)));
    }
  }

  la::Matrix matrix(comm::Communicator const& comm, double by = 1) const {
    auto const layout = la::Layout::even(comm, n);
    std::vector<std::int64_t> i, j;
    std::vector<T> v;
    for (auto r = layout.begin(); r < layout.begin() + layout.local_size(); ++r)
      for (std::int64_t c = 0; c < n; ++c)
        if (dense[std::size_t(r * n + c)] != 0.0) {
          i.push_back(r), j.push_back(c);
          v.push_back(from_complex<T>(by * dense[std::size_t(r * n + c)]));
        }
    return la::Matrix::from_coo<std::int64_t>(layout, layout, dtype_v<T>, i, j, v.data());
  }

  /// The largest |b - op(A) x| of a row beside |op(A)| |x| + |b|.
  double error(char trans, std::int64_t k, std::vector<T> const& x, std::vector<T> const& b, double by = 1) const {
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < k; ++c) {
        auto r = to_complex(b[std::size_t(i * k + c)]);
        double size = std::abs(r);
        for (std::int64_t j = 0; j < n; ++j) {
          auto a = by * (trans == 'N' ? dense[std::size_t(i * n + j)] : dense[std::size_t(j * n + i)]);
          if (trans == 'C') a = std::conj(a);
          auto const v = a * to_complex(x[std::size_t(j * k + c)]);
          r -= v;
          size += std::abs(v);
        }
        worst = std::max(worst, std::isfinite(std::abs(r)) ? std::abs(r) / size : 1);
      }
    return worst;
  }
};

template <class T>
std::vector<T> right_hand_side(std::int64_t n, std::int64_t k) {
  std::vector<T> b;
  for (std::int64_t i = 0; i < n * k; ++i) b.push_back(from_complex<T>({std::cos(double(i)) + 0.1, std::sin(3.0 * double(i))}));
  return b;
}

template <class T>
std::vector<T> solved(DistributedFactors const& f, la::Layout const& layout, char trans, std::int64_t k, std::vector<T> const& b) {
  auto const first = b.begin() + layout.begin() * k;
  std::vector<T> const mine(first, first + layout.local_size() * k);
  std::vector<T> x(mine.size());
  f.solve(trans, k, mine.data(), x.data());
  auto const all = layout.comm().all_gather_bytes(std::as_bytes(std::span<T const>(x)));
  std::vector<T> out(b.size());
  if (!out.empty()) std::memcpy(static_cast<void*>(out.data()), all.data(), all.size());
  return out;
}

template <class T>
class DistributedOf : public ::testing::Test {};
using Types = ::testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(DistributedOf, Types);

}  // namespace

TYPED_TEST(DistributedOf, FactorsSolveWithAndWithoutSubtreesOnEveryGrid) {
  using T = TypeParam;
  auto const& comm = world();
  double const tolerance = 2e3 * epsilon_of(dtype_v<T>);
  unsigned seed = 0;
  for (auto const form : {Form::general, Form::zero_diagonal, Form::definite, Form::indefinite})
    for (auto const& [nx, ny] : {std::pair{0, 0}, {1, 1}, {1, 3}, {7, 6}, {12, 13}}) {
      Problem<T> const problem(++seed, nx, ny, form);
      auto const A = problem.matrix(comm);
      auto const options = options_for(form);
      std::int64_t const k = 1 + seed % 11;
      auto const b = right_hand_side<T>(problem.n, k);
      for (auto const& grid : grids_of(comm.size()))
        for (bool const subtrees : {true, false})
          for (std::int32_t const width : {1, 5, 128}) {
            DistributedFactors f(A, options, {grid, subtrees, width});
            for (char const trans : {'N', 'T', 'C'}) {
              auto const x = solved<T>(f, A.range(), trans, k, b);
              EXPECT_LE(problem.error(trans, k, x, b), tolerance) << nx << " x " << ny << ", form " << int(form) << ", " << grid.describe()
                                                                  << ", " << subtrees << ", " << width << ", " << trans;
            }
            EXPECT_EQ(f.info().replaced, 0);
          }
    }
}

TYPED_TEST(DistributedOf, BlocksOfTwoArePivotsInSubtreesAndInBlocks) {
  using T = TypeParam;
  auto const& comm = world();
  double const eps = epsilon_of(dtype_v<T>);
  for (auto const& [nx, ny] : {std::pair{1, 2}, {2, 6}, {9, 8}})
    for (bool const weak : {false, true}) {
      Problem<T> problem(31, nx, ny, Form::pairs);
      auto const above = std::int64_t(nx - 1) * ny;
      for (std::int64_t i = 0; weak && i < above; ++i)  // no pivot is large enough beside the last block's rows, to which none can go
        for (std::int64_t j = 0; j < above; ++j) problem.dense[std::size_t(i * problem.n + j)] /= 64;
      auto const A = problem.matrix(comm);
      auto options = options_for(Form::pairs);
      options.equilibrate = false;
      Factors const alone(problem.matrix({}).diagonal_block(), options);
      auto const b = right_hand_side<T>(problem.n, 3);
      for (auto const& grid : grids_of(comm.size()))
        for (bool const subtrees : {true, false})
          for (std::int32_t const width : {1, 4, 7, 128}) {
            DistributedFactors const f(A, options, {grid, subtrees, width});
            auto const name = format("{} x {} on {}, {}, {}, {}", nx, ny, grid.describe(), weak, subtrees, width);
            EXPECT_EQ(f.info().replaced, 0) << name;
            EXPECT_EQ(f.info().negative, alone.info().negative) << name;
            EXPECT_GT(f.info().two_by_two, 0) << name;
            auto const d = f.determinant(), one = alone.determinant();
            EXPECT_EQ(d.re, one.re) << name;
            EXPECT_NEAR(d.log, one.log, 1e4 * eps * std::max(1.0, std::abs(one.log))) << name;
            for (char const trans : {'N', 'T', 'C'}) {
              auto const x = solved<T>(f, A.range(), trans, 3, b);
              EXPECT_LE(problem.error(trans, 3, x, b), 1e5 * eps) << name << ", " << trans;  // without refinement
            }
          }
    }
}

TYPED_TEST(DistributedOf, FactorsAgreeWithThoseOfOneRank) {
  using T = TypeParam;
  auto const& comm = world();
  for (auto const form : {Form::general, Form::zero_diagonal, Form::definite, Form::indefinite}) {
    Problem<T> const problem(77, 9, 10, form);
    auto const options = options_for(form);
    Factors const alone(problem.matrix({}).diagonal_block(), options);
    DistributedFactors const f(problem.matrix(comm), options, {process_grid("square", comm.size()), true, 4});
    auto const a = alone.determinant(), d = f.determinant();
    double const near = 1e3 * epsilon_of(dtype_v<T>);
    EXPECT_NEAR(a.re, d.re, near);
    EXPECT_NEAR(a.im, d.im, near);
    EXPECT_NEAR(a.log, d.log, near * std::max(1.0, std::abs(a.log)));
    EXPECT_NEAR(f.condition() / alone.condition(), 1, 0.5);
    EXPECT_EQ(f.condition_beyond(1e300), 0);
    EXPECT_EQ(f.info().negative, alone.info().negative);
    if (form == Form::indefinite) {
      EXPECT_GT(f.info().negative, 0);
      EXPECT_LE(f.info().growth, 2 * alone.info().growth);
      EXPECT_GE(f.info().growth, alone.info().growth / 2);
    }
    if (form != Form::zero_diagonal) {                    // pivots may be delayed there
      EXPECT_GE(f.info().entries, alone.info().entries);  // what ranks share keeps zeros of LU
      EXPECT_LE(f.info().entries, form == Form::general ? f.info().predicted.entries : alone.info().entries);
    }
  }
}

TYPED_TEST(DistributedOf, FactorsTakeNewValuesAndKeepTheirBits) {
  using T = TypeParam;
  auto const& comm = world();
  for (auto const form : {Form::general, Form::indefinite}) {
    Problem<T> const problem(5, 8, 9, form);
    auto const A = problem.matrix(comm);
    DistributedFactors f(A, options_for(form), {process_grid("square", comm.size()), true, 4});
    auto const b = right_hand_side<T>(problem.n, 2);
    auto const x = solved<T>(f, A.range(), 'N', 2, b);
    auto const negative = f.info().negative;
    ASSERT_TRUE(f.update(problem.matrix(comm, -3.0)));
    if (is_hermitian(form)) {
      EXPECT_EQ(f.info().negative, problem.n - negative);
    }
    auto const y = solved<T>(f, A.range(), 'N', 2, b);
    EXPECT_LE(problem.error('N', 2, y, b, -3.0), 2e3 * epsilon_of(dtype_v<T>));
    for (int again = 0; again < 3; ++again) {
      ASSERT_TRUE(f.update(A));
      auto const z = solved<T>(f, A.range(), 'N', 2, b);
      EXPECT_EQ(std::memcmp(x.data(), z.data(), x.size() * sizeof(T)), 0);
    }
  }
}

TEST(Distributed, ErrorsComeOnAllRanks) {
  auto const& comm = world();
  Problem<double> const problem(5, 6, 6, Form::definite);
  auto negative = problem;
  negative.dense[std::size_t(20 * problem.n + 20)] = -100;
  FactorOptions options;
  options.kind = FactorKind::cholesky;
  auto const grid = process_grid("square", comm.size());
  auto const says = [&](auto const& matrix, FactorOptions const& with, bool subtrees) -> std::string {
    try {
      DistributedFactors const f(matrix.matrix(comm), with, {grid, subtrees, 3});
      return "";
    } catch (Error const& e) {
      return std::string(name_of(e.kind())) + ": " + e.what();
    }
  };
  EXPECT_EQ(says(problem, options, true), "");
  for (bool const subtrees : {true, false}) EXPECT_NE(says(negative, options, subtrees).find("not positive definite"), std::string::npos);
  options.memory_limit = 10;
  EXPECT_NE(says(problem, options, true).find("the factors of 36 rows need"), std::string::npos);
  options.memory_limit = 0;
  options.kind = FactorKind::lu;
  auto empty = problem;
  for (std::int64_t j = 0; j < problem.n; ++j) empty.dense[std::size_t(7 * problem.n + j)] = 0;
  EXPECT_NE(says(empty, options, true).find("its structural rank is 35 of 36"), std::string::npos);
  options.kind = FactorKind::hermitian;
  EXPECT_EQ(says(negative, options, true), "");
  auto one_sided = problem;
  one_sided.dense[1] += 0.5;
  EXPECT_NE(says(one_sided, options, true).find("not Hermitian"), std::string::npos);
}

TEST(Distributed, ASingularMatrixHasReplacedPivots) {
  auto const& comm = world();
  for (auto const form : {Form::general, Form::indefinite}) {
    Problem<double> problem(5, 6, 6, form);
    auto const at = [&](std::int64_t i, std::int64_t j) -> Value& { return problem.dense[std::size_t(i * problem.n + j)]; };
    for (std::int64_t j = 0; j < problem.n; ++j) at(7, j) = at(8, j);
    if (is_hermitian(form))
      for (std::int64_t j = 0; j < problem.n; ++j) at(j, 7) = at(j, 8);
    for (bool const subtrees : {true, false}) {
      DistributedFactors const f(problem.matrix(comm), options_for(form), {process_grid("square", comm.size()), subtrees, 3});
      EXPECT_EQ(f.info().replaced, 1) << int(form);
      EXPECT_TRUE(std::isinf(f.condition()));
      EXPECT_EQ(f.determinant().re, 0);
    }
  }
}

TYPED_TEST(DistributedOf, SaddlePointsNeedNoPivotFromOutsideOfABlock) {
  using T = TypeParam;
  auto const& comm = world();
  double const eps = epsilon_of(dtype_v<T>);
  Problem<T> problem(3, 12, 11, Form::definite);
  std::mt19937 random(8);
  for (std::int64_t i = 0; i < problem.n; i += 3) {  // no entries among every third row; each has a large one elsewhere
    for (std::int64_t j = 0; j < problem.n; j += 3) problem.dense[std::size_t(i * problem.n + j)] = 0;
    auto const other = i + 1 + std::int64_t(random() % 2);
    problem.dense[std::size_t(i * problem.n + other)] = problem.dense[std::size_t(other * problem.n + i)] = 2;
  }
  auto const A = problem.matrix(comm);
  auto const options = options_for(Form::indefinite);
  Factors const alone(problem.matrix({}).diagonal_block(), options);
  auto const b = right_hand_side<T>(problem.n, 2);
  for (auto const& grid : grids_of(comm.size()))
    for (bool const subtrees : {true, false})
      for (std::int32_t const width : {1, 6, 128}) {
        DistributedFactors const f(A, options, {grid, subtrees, width});
        auto const x = solved<T>(f, A.range(), 'N', 2, b);
        auto const name = format("{}, {}, {}", grid.describe(), subtrees, width);
        EXPECT_EQ(f.info().replaced, 0) << name;
        EXPECT_EQ(f.info().negative, alone.info().negative) << name;
        EXPECT_LE(problem.error('N', 2, x, b), 1e5 * eps) << name;
      }
}

TEST(Pairs, FollowAMatchingWhereTheDiagonalIsSmall) {
  std::mt19937 random(4);
  for (std::int64_t const n : {0, 1, 2, 3, 9, 64}) {
    Problem<double> problem(unsigned(n), n, 1, Form::definite);
    for (std::int64_t e = 0; e < 2 * n; ++e) {
      auto const i = std::int64_t(random()) % n, j = std::int64_t(random()) % n;
      problem.dense[std::size_t(i * n + j)] = problem.dense[std::size_t(j * n + i)] = i == j ? 0.0 : 1.0;
    }
    auto const a = problem.matrix({}).diagonal_block();
    auto const found = la::maximum_product_matching(a);
    if (found.structural_rank < n) continue;
    auto const partner = partners(a, found);
    auto const entry = [&](std::int64_t i, std::int64_t j) { return std::abs(problem.dense[std::size_t(i * n + j)]); };
    for (std::int64_t i = 0; i < n; ++i) {
      auto const j = std::int64_t(partner[std::size_t(i)]);
      EXPECT_EQ(partner[std::size_t(j)], i);
      bool const matched = found.column_of_row[std::size_t(i)] == j || found.column_of_row[std::size_t(j)] == i;
      if (j != i) {
        EXPECT_TRUE(matched && entry(i, j) > 0 && std::min(entry(i, i), entry(j, j)) < entry(i, j));
      }
    }
    PairedPattern const pattern(a, partner);
    std::vector<std::int32_t> order(std::size_t(pattern.compressed.rows));
    std::iota(order.rbegin(), order.rend(), 0);
    auto const all = pattern.expanded(order);
    ASSERT_EQ(std::set<std::int32_t>(all.begin(), all.end()).size(), std::size_t(n));
    for (std::size_t k = 0; k < all.size(); ++k) {  // partners are neighbours
      auto const j = partner[std::size_t(all[k])];
      if (j != all[k]) {
        EXPECT_TRUE((k > 0 && all[k - 1] == j) || (k + 1 < all.size() && all[k + 1] == j));
      }
    }
    std::set<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int32_t i = 0; i < n; ++i)
      for (auto p = pattern.alike.row_offsets()[std::size_t(i)]; p < pattern.alike.row_offsets()[std::size_t(i) + 1]; ++p)
        places.insert({i, pattern.alike.column_indices()[std::size_t(p)]});
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        if (entry(i, j) > 0) {
          EXPECT_TRUE(places.contains({i, j}));
        }
        EXPECT_EQ(places.contains({i, j}), places.contains({partner[std::size_t(i)], j}));
      }
  }
}

TEST(Pairs, OfAnOddCycleTheLargestDiagonalIsAlone) {
  Problem<double> problem(1, 3, 1, Form::definite);
  problem.dense = {0, 1, 1, 1, 0, 1, 1, 1, 0.5};
  auto const a = problem.matrix({}).diagonal_block();
  EXPECT_EQ(partners(a, la::maximum_product_matching(a)), (std::vector<std::int32_t>{1, 0, 2}));
}

TEST(Pairs, AreNotCut) {
  Supernodes nodes;
  nodes.starts = {0, 1, 10, 12};
  nodes.parent = {1, 2, -1};
  nodes.row_offsets = {0, 11, 13, 13};
  nodes.row_indices = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 10, 11};
  std::vector<char> joined(12, 0);
  for (auto const c : {2, 4, 8, 11}) joined[std::size_t(c)] = 1;
  for (std::int32_t width = 1; width <= 12; ++width) {
    auto const cut = cut_supernodes(nodes, width, joined);
    EXPECT_EQ(cut.starts.back(), 12);
    for (std::int32_t s = 0; s < cut.count(); ++s) {
      EXPECT_GE(cut.width(s), 1);
      EXPECT_LE(cut.width(s), width + 1);
      EXPECT_FALSE(joined[std::size_t(cut.starts[std::size_t(s)])]) << width;
      EXPECT_EQ(cut.parent[std::size_t(s)], s + 1 < cut.count() ? s + 1 : -1);
      std::int32_t const below = cut.starts[std::size_t(s)] == 0 ? 11 : 12 - cut.starts[std::size_t(s) + 1];
      EXPECT_EQ(cut.below(s), below) << width;
    }
  }
}

TEST(Mapping, GivesEachRankWholeSubtreesOfEqualWork) {
  // a complete binary tree of 8 floors, leaves first
  Supernodes nodes;
  nodes.starts = {0};
  std::vector<double> work;
  for (int floor = 8, first = 0; floor > 0; --floor) {
    int const here = 1 << (floor - 1);
    for (int i = 0; i < here; ++i) {
      nodes.parent.push_back(floor == 1 ? -1 : first + here + i / 2);
      nodes.starts.push_back(nodes.starts.back() + 1);
      work.push_back(1000);
    }
    first += here;
  }
  for (int ranks = 1; ranks <= 9; ++ranks) {
    auto const of = map_tree(nodes, work, ranks);
    std::vector<int> load(std::size_t(ranks), 0);
    int top = 0;
    for (std::int32_t s = 0; s < nodes.count(); ++s) {
      auto const r = of[std::size_t(s)];
      if (r < 0) ++top;
      else ++load[std::size_t(r)];
      if (auto const p = nodes.parent[std::size_t(s)]; p >= 0 && of[std::size_t(p)] >= 0) {
        EXPECT_EQ(r, of[std::size_t(p)]);
      }
    }
    auto const [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most, 1.35 * 255 / ranks) << ranks;
    EXPECT_GT(*least, 0);
    EXPECT_LE(top, 8 * ranks);
  }
}
