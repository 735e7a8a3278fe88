// The kernels of products of rows against dense ones: rows of any length, orders of rows, ranks and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>

#include "asterism/device/host/team.hpp"
#include "asterism/la/products/galerkin.hpp"
#include "asterism/la/products/matrix_product.hpp"
#include "asterism/la/products/row_shapes.hpp"
#include "asterism/la/products/sparse_product.hpp"
#include "harness/dense.hpp"
#include "harness/fenced.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;
using namespace asterism::test;
using std::int32_t;
using std::int64_t;

namespace {

/// The same array, right before a page that nobody may read.
template <class T>
Buffer<T> fenced(Buffer<T> const& a) {
  auto const copy = std::make_shared<harness::Fenced<T>>(std::size_t(a.size()));
  std::copy(a.begin(), a.end(), copy->data());
  return Buffer<T>(device::Array::wrap(copy->data(), std::size_t(a.size()) * sizeof(T), copy));
}

/// Row i has lengths[i % lengths.size()] entries, at places of a shuffled list.
Dense with_rows_of(std::vector<int64_t> const& lengths, int64_t rows, int64_t cols, bool complex, unsigned seed) {
  auto const values = random(rows, cols, complex, seed);
  Dense out(rows, cols);
  std::vector<int64_t> places(static_cast<std::size_t>(cols));
  std::iota(places.begin(), places.end(), 0);
  std::mt19937 shuffle(seed);
  for (int64_t i = 0; i < rows; ++i) {
    std::shuffle(places.begin(), places.end(), shuffle);
    auto const n = std::min(lengths[std::size_t(i) % lengths.size()], cols);
    for (int64_t l = 0; l < n; ++l) out(i, places[std::size_t(l)]) = values(i, places[std::size_t(l)]);
  }
  return out;
}

void expect_near(Dense const& found, Dense const& wanted, Dtype dtype, std::string const& what) {
  ASSERT_EQ(found.rows(), wanted.rows());
  ASSERT_EQ(found.cols(), wanted.cols());
  EXPECT_LE(norm(found - wanted), tolerance(dtype) * std::max(1.0, norm(wanted))) << what;
}

template <class F>
void for_threads(std::initializer_list<int> threads, F const& f) {
  auto const team = device::host::team_size();
  for (int const n : threads) {
    device::host::set_team_size(n);
    f(n);
  }
  device::host::set_team_size(team);
}

/// Entries within `reach` of the diagonal, or anywhere.
Dense hermitian(int64_t n, int64_t reach, bool complex, unsigned seed) {
  auto const a = random(n, n, complex, seed);
  Dense out(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      if (i - j > reach || (reach >= n && (i * 7 + j * 3) % 11 > 1 && i != j)) continue;
      out(i, j) = i == j ? Value(a(i, i).real()) : a(i, j);
      out(j, i) = std::conj(out(i, j));
    }
  return out;
}

/// Up to four entries a row, near one another where the coarse unknowns are in the order of the fine ones; some rows and columns are empty.
Dense interpolation(int64_t n, int64_t coarse, bool ordered, bool complex, unsigned seed) {
  auto const values = random(n, coarse, complex, seed);
  std::mt19937 choose(seed);
  Dense out(n, coarse);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t l = 0; l < i % 5; ++l) {
      auto const j = ordered ? std::min(i * coarse / n + l, coarse - 1) : int64_t(choose() % unsigned(coarse));
      if (j % 9 != 4) out(i, j) = values(i, j);
    }
  return out;
}

/// f(R, A, P, cancel): the rows of the factors, R = P^H.
template <class F>
void with_factors(Matrix const& A, Matrix const& P, comm::Layout const& fine, comm::Layout const& coarse, F const& f) {
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Progress progress("a product", 1);
    comm::Cancellation cancel(fine.comm(), progress);
    auto const inner = rows_of<T>(A), right = rows_of<T>(P);
    f(transpose(right, fine, coarse, true, cancel), inner, right, cancel);
  });
}

}  // namespace

// Short rows are read as whole vectors: not beyond the end of the arrays. Sums of up to 32 terms, and of more, are made in other ways.
TEST(SparseProduct, OfRowsOfAnyLength) {
  constexpr int64_t inner = 90, columns = 300;
  auto const alone = comm::Communicator();
  for (auto const dtype : all_dtypes)
    for (std::vector<int64_t> const& of_b : {std::vector<int64_t>{0, 1, 2, 3}, {4}, {7, 8, 9}, {15, 16, 17}, {1, 40, 5, 300}}) {
      auto const a = with_rows_of({0, 1, 2, 4, 7, 8, 9, 33, 90}, 30, inner, is_complex(dtype), 1);
      auto const b = with_rows_of(of_b, inner, columns, is_complex(dtype), 2);
      auto const layout = [&](int64_t n) { return comm::Layout::even(alone, n); };
      auto const A = to_sparse(a, layout(30), layout(inner), dtype), B = to_sparse(b, layout(inner), layout(columns), dtype);
      with_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto rows = rows_of<T>(B);
        rows.col = fenced(rows.col);
        rows.val = fenced(rows.val);
        Progress progress("a product", 1);
        comm::Cancellation cancel(alone, progress);
        for_threads({1, 2}, [&](int) {
          auto const left = rows_of<T>(A);
          auto const C = sparse_product(left, Part::all, wide_rows(rows, layout(inner), layout(columns), left.map), cancel);
          for (int32_t i = 0; i < C.count; ++i)
            for (auto p = C.ptr[i] + 1; p < C.ptr[i + 1]; ++p) ASSERT_LT(C.col[p - 1], C.col[p]);
          expect_near(to_dense(matrix_of(C, layout(30), layout(columns))), a * b, dtype, std::to_string(of_b[0]));
        });
      });
    }
}

TEST(GalerkinProduct, OfOrderedAndUnorderedMatricesOnAnyRanksAndThreads) {
  constexpr int64_t n = 210, coarse = 40;
  for (auto const dtype : all_dtypes)
    for (int64_t const reach : {int64_t(0), int64_t(3), n})
      for (bool const ordered : {true, false}) {
        auto const a = hermitian(n, reach, is_complex(dtype), 3), p = interpolation(n, coarse, ordered, is_complex(dtype), 4);
        auto const wanted = adjoint(p) * a * p;
        for (auto const& comm : {comm::Communicator(), world()}) {
          auto const fine = uneven(comm, n), few = comm::Layout::even(comm, coarse);
          auto const A = to_sparse(a, fine, fine, dtype), P = to_sparse(p, fine, few, dtype);
          with_factors(A, P, fine, few, [&](auto const& left, auto const& inner, auto const& right, auto& cancel) {
            std::vector<Dense> first;
            for_threads({1, 2, 3}, [&](int threads) {
              auto const what = std::to_string(threads) + " threads, reach " + std::to_string(reach);
              Dense const found[] = {to_dense(matrix_of(triple_product(left, inner, right, fine, fine, few, cancel), few, few)),
                                     to_dense(matrix_of(hermitian_triple_product(left, inner, right, fine, few, cancel), few, few))};
              expect_near(found[0], wanted, dtype, what);
              expect_near(found[1], wanted, dtype, what + ", Hermitian");
              EXPECT_EQ(norm(found[1] - adjoint(found[1])), 0) << what;
              if (first.empty()) first.assign(found, found + 2);
              for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(norm(found[k] - first[k]), 0) << what;
            });
          });
        }
      }
}

namespace {

/// What the rows of a line's matrix and of its interpolation have: where they are equal, products are computed once.
struct Line {
  int64_t nodes = 2000;
  int64_t unknowns = 1;            // of a node
  int64_t equal_from = 0, to = 0;  // nodes whose rows of A have the same values
  bool equal_interpolation = true;
  bool by_component = false;  // an unknown of a coarse node is interpolated to the like ones alone
  int64_t other_first = 0;    // of each so many nodes the first coupling has another value
};

/// A couples each node to two on either side; P takes each node from its aggregate of three, and the first of each from the one before.
std::array<Matrix, 2> matrices_of(Line const& line, comm::Layout const& fine, comm::Layout const& coarse, Dtype dtype) {
  std::vector<int64_t> i[2], j[2];
  auto const k = line.unknowns;
  for (auto row = fine.begin(); row < fine.begin() + fine.local_size(); ++row) {
    auto const node = row / k;
    for (auto other = std::max<int64_t>(0, node - 2); other <= std::min(line.nodes - 1, node + 2); ++other)
      for (int64_t c = 0; c < k; ++c) i[0].push_back(row), j[0].push_back(other * k + c);
    for (auto part = node / 3 - (node % 3 == 0 && node > 0); part <= node / 3; ++part)
      for (int64_t c = 0; c < k; ++c)
        if (!line.by_component || c == row % k) i[1].push_back(row), j[1].push_back(part * k + c);
  }
  auto const hash = [](int64_t a, int64_t b) { return double((a * 7919 + b * 104729) % 1000) / 500 - 1; };
  auto const made = [&](std::size_t which, comm::Layout const& columns, auto const& value) {
    return with_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values;
      for (std::size_t e = 0; e < i[which].size(); ++e) values.push_back(T(real_t<T>(value(i[which][e], j[which][e]))));
      return Matrix::from_coo<int64_t>(fine, columns, dtype, i[which], j[which], values.data());
    });
  };
  return {made(0, fine,
               [&](int64_t a, int64_t b) {
                 auto const least = std::min(a, b) / k, most = std::max(a, b) / k;
                 bool const other = line.other_first > 0 && most % line.other_first == 0 && most == least + 2;
                 bool const equal = least >= line.equal_from && most < line.to && !other;
                 return equal ? hash(most - least, (a % k) * (b % k) + (a % k) + (b % k)) : hash(a + b, a * b);
               }),
          made(1, coarse, [&](int64_t a, int64_t b) {
            if (line.by_component) return hash(a / k % 3 + 1, a / k / 3 - b / k);
            return line.equal_interpolation ? hash(a % (3 * k) + 1, b % k + 3 * (a / k / 3 - b / k)) : hash(a, b);
          })};
}

}  // namespace

// Rows that are still at hand keep the numbers that they got before.
TEST(ProductShapes, ForgottenOnesHaveNumbersOfTheirOwn) {
  for (bool const again : {false, true}) {
    ProductShapes shapes;
    std::vector<int32_t> numbers;
    int32_t const columns[] = {3, 4, 8};
    for (int64_t n = 1; n <= 5; ++n) {
      auto const shape_of = [n](int64_t t) { return RowShape{int32_t(t), int32_t(5 * t + n)}; };
      double const factors[] = {1, 2, 3, 4, double(n)};
      ValueWords<double> const words(factors, n);
      ASSERT_LT(shapes.find(n, shape_of, words), 0);
      auto const found = shapes.add(columns, 3, {n});
      numbers.push_back(shapes.identity(found));
      EXPECT_EQ(shapes.find(n, shape_of, words), found);
      double const others[] = {-1, 2, 3, 4, -double(n)};
      EXPECT_LT(shapes.find(n, shape_of, ValueWords<double>(others, n)), 0);
      EXPECT_LT(shapes.find(n, shape_of), 0);
      if (n % 2 == 0) again ? shapes.start_again() : shapes.forget(false);
    }
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  }
}

// Whole products are found again, up to where rows begin to differ; the other way is two products. In the longest line so many rows differ
// that what is known of them is forgotten.
TEST(GalerkinProduct, OfRowsThatAreEqual) {
  for (auto const dtype : all_dtypes)
    for (Line const& line : {Line{2000, 1, 0, 2000}, Line{3000, 1, 0, 1700}, Line{3000, 1, 900, 3000}, Line{1500, 1, 0, 0},
                             Line{1500, 1, 0, 1500, false}, Line{1200, 3, 0, 1200}, Line{1000, 2, 300, 700},
                             Line{900, 3, 0, 900, true, true}, Line{2000, 1, 0, 2000, true, false, 97}, Line{7800, 8, 0, 6000}})
      for (auto const& comm : {comm::Communicator(), world()}) {
        auto const k = line.unknowns, parts = (line.nodes + 2) / 3;
        if (line.nodes > 5000 && (dtype != Dtype::float64 || comm.size() > 1)) continue;
        auto const fine = comm::Layout::even(comm, line.nodes * k), coarse = comm::Layout::even(comm, parts * k);
        auto const [A, P] = matrices_of(line, fine, coarse, dtype);
        auto const R = transposed(P, true);
        Factor const factors[] = {{R}, {A}, {P}};
        auto const wanted = product(factors);
        with_factors(A, P, fine, coarse, [&](auto const& left, auto const& inner, auto const& right, auto& cancel) {
          std::optional<Matrix> first;
          for_threads({1, 2, 3}, [&](int threads) {
            auto const what = std::to_string(line.nodes) + " nodes, " + std::to_string(threads) + " threads";
            auto const found = matrix_of(triple_product(left, inner, right, fine, fine, coarse, cancel), coarse, coarse);
            EXPECT_EQ(sum(1, found, -1, wanted).frobenius_norm(), 0) << what;
            auto const half = matrix_of(hermitian_triple_product(left, inner, right, fine, coarse, cancel), coarse, coarse);
            EXPECT_LE(sum(1, half, -1, wanted).frobenius_norm(), tolerance(dtype) * wanted.frobenius_norm()) << what;
            EXPECT_EQ(sum(1, half, -1, first ? *first : half).frobenius_norm(), 0) << what;
            if (!first) first = half;
          });
        });
      }
}
