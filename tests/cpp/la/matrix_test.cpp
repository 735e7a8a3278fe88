#include "asterism/la/matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/shared_array.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/la/assembly/assembly.hpp"
#include "asterism/la/near_null_space.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;

namespace {

using Dense = std::map<std::pair<std::int64_t, std::int64_t>, std::complex<double>>;

template <class T>
double tolerance() {
  return std::is_same_v<real_t<T>, float> ? 2e-5 : 1e-13;
}

template <class T>
T random_value(std::mt19937& r) {
  std::uniform_real_distribution<double> u(-1, 1);
  double const re = u(r), im = u(r);
  return from_complex<T>({re, im});
}

/// A random matrix through from_coo, with repeats, negatives and rows of other ranks; and its dense form. By the seed, each rank's entries
/// are by rows and none is left out (every third), also over all ranks (the next of three).
template <class T>
Matrix random_matrix(comm::Communicator const& c, std::int64_t rows, std::int64_t cols, unsigned seed, Dense& dense) {
  std::vector<std::int64_t> i, j;
  std::vector<T> v;
  bool const by_rows = seed % 3 != 0, over_all = seed % 3 == 2;
  for (int r = 0; r < c.size(); ++r) {
    std::mt19937 random(seed * 17 + unsigned(r));
    for (int e = 0; e < int(2 * rows); ++e) {
      auto a = std::int64_t(random() % std::uint64_t(rows)), b = std::int64_t(random() % std::uint64_t(cols));
      if (over_all) a = std::max<std::int64_t>(0, std::min(rows - 1, ((2 * r * rows + e) / (2 * c.size())) - 1));
      else if (by_rows) a = e / 2;
      bool const ignored = !by_rows && random() % 10 == 0;
      auto const x = random_value<T>(random);
      if (!ignored) dense[{a, b}] += to_complex(x);
      if (r == c.rank()) i.push_back(ignored ? -1 : a), j.push_back(b), v.push_back(x);
    }
  }
  return Matrix::from_coo<std::int64_t>(Layout::even(c, rows), Layout::even(c, cols), dtype_v<T>, i, j, v.data());
}

template <class T>
void check_products(std::int64_t rows, std::int64_t cols, std::int64_t k, unsigned seed) {
  auto const& c = world();
  Dense dense;
  auto const A = random_matrix<T>(c, rows, cols, seed, dense);
  ASSERT_EQ(A.nnz(), std::int64_t(dense.size()));
  double squares = 0;
  for (auto const& [place, value] : dense) squares += std::norm(value);
  EXPECT_NEAR(A.frobenius_norm(), std::sqrt(squares), 10 * tolerance<T>() * std::sqrt(squares));
  Vector x(A.domain(), A.dtype(), k), y(A.range(), A.dtype(), k), b = y.like(), r = y.like();
  fill_hashed(x, 5);
  fill_hashed(b, 6);
  A.apply(x, y);
  A.residual(b, x, r);
  // all of x on every rank
  std::vector<std::complex<double>> full(std::size_t(rows * k), 0.0), transposed(std::size_t(cols * k), 0.0);
  std::vector<std::complex<double>> xs(std::size_t(cols * k)), bs(std::size_t(rows * k));
  {
    Vector one(Layout::from_offsets(comm::Communicator(), {0, cols}), A.dtype(), k),
        two(Layout::from_offsets(comm::Communicator(), {0, rows}), A.dtype(), k);
    fill_hashed(one, 5);
    fill_hashed(two, 6);
    for (std::size_t e = 0; e < xs.size(); ++e) xs[e] = to_complex(one.host<T>()[e]);
    for (std::size_t e = 0; e < bs.size(); ++e) bs[e] = to_complex(two.host<T>()[e]);
  }
  for (auto const& [ij, v] : dense)
    for (std::int64_t l = 0; l < k; ++l) {
      full[std::size_t(ij.first * k + l)] += v * xs[std::size_t(ij.second * k + l)];
      transposed[std::size_t(ij.second * k + l)] += std::conj(v) * bs[std::size_t(ij.first * k + l)];
    }
  double const tol = tolerance<T>() * double(cols + 1);
  for (std::int64_t e = 0; e < y.local_size() * k; ++e) {
    auto const at = std::size_t(A.range().begin() * k + e);
    ASSERT_LT(std::abs(to_complex(y.host<T>()[std::size_t(e)]) - full[at]), tol);
    ASSERT_LT(std::abs(to_complex(r.host<T>()[std::size_t(e)]) - (bs[at] - full[at])), tol);
  }
  Vector z(A.domain(), A.dtype(), k);
  A.apply_transpose(b, z, true);
  for (std::int64_t e = 0; e < z.local_size() * k; ++e)
    ASSERT_LT(std::abs(to_complex(z.host<T>()[std::size_t(e)]) - transposed[std::size_t(A.domain().begin() * k + e)]), tol);
  // back and forth
  auto const again = A.to_rows();
  auto const B = Matrix::from_rows<std::int64_t>(A.range(), A.domain(), A.dtype(), again.offsets, again.columns, again.values.raw());
  Vector y2 = y.like();
  B.apply(x, y2);
  for (std::int64_t e = 0; e < y.local_size() * k; ++e)
    ASSERT_EQ(to_complex(y.host<T>()[std::size_t(e)]), to_complex(y2.host<T>()[std::size_t(e)]));
}

/// A matrix and the same stored as a half of it do the same.
template <class T>
void check_half(std::int64_t n, SymmetricHalf::Kind kind, std::int64_t k, unsigned seed) {
  auto const& c = world();
  bool const hermitian = kind == SymmetricHalf::Kind::hermitian;
  std::vector<std::int64_t> i, j;
  std::vector<T> v;
  std::mt19937 random(seed);
  for (int e = 0; e < int(3 * n); ++e) {
    auto const a = std::int64_t(random() % std::uint64_t(n)),
               b = e % 2 ? std::min(a + 1, n - 1) : std::int64_t(random() % std::uint64_t(n));
    auto x = random_value<T>(random);
    if (a == b && hermitian) x = T(real(x));
    if (e % c.size() != c.rank()) continue;
    i.push_back(a), j.push_back(b), v.push_back(x);
    if (a != b) i.push_back(b), j.push_back(a), v.push_back(hermitian ? conj(x) : x);
  }
  auto const layout = Layout::even(c, n);
  auto const A = Matrix::from_coo<std::int64_t>(layout, layout, dtype_v<T>, i, j, v.data());
  auto const H = A.symmetric(kind);
  ASSERT_NE(H.half(), nullptr);
  EXPECT_EQ(H.nnz(), A.nnz());
  EXPECT_EQ(norm(A.diagonal()).real(), norm(H.diagonal()).real());
  EXPECT_NEAR(A.scaled_row_sum_norm(), H.scaled_row_sum_norm(), 1e-5);
  Vector x(layout, A.dtype(), k), b = x.like(), w(layout, A.dtype());
  fill_hashed(x, 1);
  fill_hashed(b, 2);
  fill_hashed(w, 3);
  auto const same = [&](auto const& f) {
    Vector y = x.like(), z = x.like();
    fill_hashed(y, 4);
    fill_hashed(z, 4);
    f(A, y);
    f(H, z);
    axpy(-1.0, y, z);
    for (auto const& d : norm(z).values()) EXPECT_LE(d.real(), tolerance<T>() * double(n + 1));
  };
  same([&](Matrix const& M, Vector& y) { M.apply(x, y); });
  same([&](Matrix const& M, Vector& y) { M.residual(b, x, y); });
  same([&](Matrix const& M, Vector& y) { M.smooth(b, x, w, y); });
  same([&](Matrix const& M, Vector& y) { M.apply_add(x, y); });
  auto const rows = A.to_rows(), expanded = H.to_rows();
  EXPECT_EQ(rows.offsets, expanded.offsets);
  EXPECT_EQ(rows.columns, expanded.columns);
  auto const bytes = rows.values.bytes();
  EXPECT_TRUE(bytes == 0 || std::memcmp(rows.values.raw(), expanded.values.raw(), bytes) == 0);
  EXPECT_EQ(H.general().half(), nullptr);
}

}  // namespace

TEST(Matrix, HalfOfASymmetricOneDoesTheSame) {
  unsigned seed = 0;
  for (std::int64_t const n : {1, 2, 30, 700, 3000})
    for (std::int64_t const k : {1, 3})
      for (auto const kind : {SymmetricHalf::Kind::symmetric, SymmetricHalf::Kind::hermitian}) {
        check_half<float>(n, kind, k, ++seed);
        check_half<double>(n, kind, k, ++seed);
        check_half<Complex<float>>(n, kind, k, ++seed);
        check_half<Complex<double>>(n, kind, k, ++seed);
      }
}

TEST(Vector, LiesInSharedMemoryIfAsked) {
  auto const& c = world();
  bool const can = c.size() > 1 && c.node()->shares_memory();
  for (auto const mode : {comm::SharedVectors::always, comm::SharedVectors::never}) {
    comm::set_shared_vectors(mode);
    Vector v(Layout::even(c, 1000), Dtype::float64);
    bool const wanted = can && mode == comm::SharedVectors::always;
    EXPECT_EQ(wanted, can && comm::node::Arena::mine()->contains(v.data().raw()));
    EXPECT_NO_THROW(fill(v, 3.0));
    EXPECT_EQ(norm(v).real(), std::sqrt(9000.0));
  }
  comm::set_shared_vectors(comm::SharedVectors::automatic);
}

TEST(Matrix, ProductsOfAllDtypesShapesAndColumns) {
  unsigned seed = 0;
  for (auto const& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 7}, {50, 50}, {37, 101}, {300, 3}})
    for (std::int64_t k : {1, 2, 5, 17}) {
      check_products<float>(rows, cols, k, ++seed);
      check_products<double>(rows, cols, k, ++seed);
      check_products<Complex<float>>(rows, cols, k, ++seed);
      check_products<Complex<double>>(rows, cols, k, ++seed);
    }
}

TEST(Matrix, ShuffledQueueGivesTheSameProduct) {
  auto const& c = world();
  Dense dense;
  auto const A = random_matrix<double>(c, 60, 60, 3, dense);
  Vector x(A.domain(), A.dtype()), y(A.range(), A.dtype());
  fill_hashed(x, 1);
  A.apply(x, y);
  A.apply(y, x);
  auto const want = norm(x).real();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const queue = device::Queue::shuffle(seed + std::uint64_t(c.rank()));  // ranks need not agree on an order
    Vector u(A.domain(), A.dtype(), 1, queue), v(A.range(), A.dtype(), 1, queue);
    fill_hashed(u, 1);
    A.apply(u, v);
    A.apply(v, u);
    ASSERT_EQ(norm(u).real(), want);
  }
}

TEST(Assembly, QueuesSumWhileOthersMultiply) {
  auto const& c = world();
  std::mt19937 random(5 + unsigned(c.rank()));
  std::int64_t const n = 57;
  std::vector<std::int64_t> i, j;
  for (int e = 0; e < 700; ++e) {
    i.push_back(std::int64_t(random() % 60) - 3);
    j.push_back(std::int64_t(random() % 57));
    if (e % 5 == 4) i.back() = i[std::size_t(e) - 2], j.back() = j[std::size_t(e) - 2];
  }
  auto const rows = Layout::even(c, n);
  Assembly const plan(rows, rows, i, j);
  std::vector<Queue> const queues{Queue::host(), Queue::thread(), Queue::shuffle(3), Queue::strict()};
  Vector x(rows, Dtype::float64);
  fill_hashed(x, 1);
  std::vector<double> want;
  for (auto const& q : queues) {
    std::vector<Vector> products;
    std::optional<Matrix> before;
    for (int k = 0; k < 4; ++k) {
      Vector values(plan.entries(), Dtype::float64, 1, q);
      fill_hashed(values, std::uint64_t(10 + k));
      auto const A = plan.matrix(values, before && k % 2 ? &*before : nullptr);
      fill(values, 0.0);  // after the sums
      Vector y(rows, Dtype::float64, 1, q), xq = y.like();
      copy(x, xq);
      A.apply(xq, y);
      products.push_back(y);
      if (k == 0) {
        Vector same(plan.entries(), Dtype::float64);
        fill_hashed(same, 10);
        auto const once = Matrix::from_coo<std::int64_t>(rows, rows, Dtype::float64, i, j, same.host<double>().data());
        auto const a = A.to_rows(), b = once.to_rows();
        ASSERT_EQ(a.columns, b.columns);
        EXPECT_EQ(std::memcmp(a.values.raw(), b.values.raw(), a.values.bytes()), 0);
      }
      before = A;
    }
    std::vector<double> got;
    for (auto const& y : products) got.insert(got.end(), y.host<double>().begin(), y.host<double>().end());
    if (want.empty()) want = got;
    EXPECT_EQ(got, want) << q.kind();
  }
}

TEST(Matrix, ForProductsInAnotherPrecision) {
  auto const& c = world();
  Dense dense;
  auto const unordered = random_matrix<double>(c, 90 * c.size(), 70 * c.size(), 1, dense);
  std::vector<std::int64_t> i, j;  // in a grid's order
  std::vector<double> values;
  Layout const line = Layout::even(c, 800 * c.size());
  auto const beside = [](std::int64_t row) { return row < 300 ? -1 : -1 - 1e-3 * double(row); };  // equal, and then not
  for (auto row = line.begin(); row < line.begin() + line.local_size(); ++row)
    for (auto col = std::max<std::int64_t>(0, row - 1); col <= std::min(line.global_size() - 1, row + 1); ++col)
      i.push_back(row), j.push_back(col), values.push_back(row == col ? 2.1 : beside(std::max(row, col)));
  auto const grid = Matrix::from_coo<std::int64_t>(line, line, Dtype::float64, i, j, values.data());
  for (auto const& A : {unordered, grid, grid.symmetric(SymmetricHalf::Kind::symmetric)})
    for (bool const was_used : {false, true})
      for (bool const adds : {false, true})
        for (bool const same_bits : {false, true}) {
          Vector wide(A.domain(), Dtype::float64), x(A.domain(), Dtype::float32), y(A.range(), Dtype::float32), z = y.like();
          fill_hashed(x, 5), fill(y, 1.0), fill(z, 1.0), fill(wide, 1.0);
          auto of_wide = Vector(A.range(), Dtype::float64);
          if (was_used) A.apply(wide, of_wide);
          set_reproducible(same_bits);
          auto const narrow = A.for_products(Dtype::float32, adds), plain = A.converted(Dtype::float32);
          EXPECT_EQ(narrow.dtype(), Dtype::float32);
          EXPECT_EQ(narrow.nnz(), A.nnz());
          if (adds) narrow.apply_add(x, y), plain.apply_add(x, z);
          else narrow.apply(x, y), plain.apply(x, z);
          set_reproducible(false);
          auto const size = norm(z).real();
          axpby(-1.0, z, 1.0, y);
          EXPECT_LE(norm(y).real(), 20 * epsilon_of(Dtype::float32) * size) << narrow.storage_name();
          A.apply(wide, of_wide);  // as it was
        }
}

TEST(Matrix, EntriesOfRowsAreFoundWhereverTheyStand) {
  std::vector<std::int32_t> const col{0, 3, 5, 0, 4, 7, 4, 2, 5, 9};
  std::vector<std::int64_t> const ptr{0, 3, 6, 6, 7, 10};
  for (std::int32_t const column : {0, 2, 3, 4, 5, 8, 9}) {
    EntryPlace place;
    for (std::size_t r = 0; r + 1 < ptr.size(); ++r) {
      auto const at = place(col.data(), ptr[r], ptr[r + 1], column);
      auto const first = col.begin() + ptr[r], last = col.begin() + ptr[r + 1], wanted = std::find(first, last, column);
      EXPECT_EQ(at, wanted == last ? -1 : wanted - col.begin()) << "row " << r << ", column " << column;
    }
  }
}

TEST(Matrix, OneThatSharesEntriesHasABlockSizeOfItsOwn) {
  auto const& c = world();
  Dense dense;
  auto A = random_matrix<double>(c, 12 * c.size(), 12 * c.size(), 1, dense);
  auto B = A.shared();
  B.set_space(B.range().with_block_size(3));
  Vector modes(A.range(), A.dtype(), 2);
  fill(modes, 1.0);
  B.set_space(B.range().with_near_null_space(modes));
  EXPECT_EQ(A.range().block_size(), 1);
  EXPECT_FALSE(A.range().near_null_space());
  EXPECT_TRUE(B.shares_pattern_with(A));
  EXPECT_FALSE(B.is_same(A));
  Vector x(A.domain(), A.dtype(), 1), y(A.range(), A.dtype(), 1), z = y.like();
  fill_hashed(x, 5);
  A.apply(x, y);
  B.apply(x, z);
  axpby(-1.0, y, 1.0, z);
  EXPECT_EQ(norm(z).real(), 0);
}

TEST(Space, CoordinatesAreMadeWhenTheyAreAskedFor) {
  auto const& c = world();
  auto const space = Space(Layout::even(c, 12 * c.size(), 2)).with_block_size(2);
  int made = 0;
  auto const make = [&] {
    ++made;
    Vector xyz(space.nodes(), Dtype::float64, 2);
    fill_hashed(xyz, 3);
    return xyz;
  };
  auto const placed = space.with_coordinates(make);
  EXPECT_FALSE(space.coordinates());
  EXPECT_EQ(placed.memory_bytes(), 0u);
  auto const copy = placed;
  auto const modes = near_null_space_of(copy, Dtype::float64);
  ASSERT_EQ(modes.columns(), 3);
  auto const xyz = placed.coordinates().host<double>();
  for (std::size_t v = 0; v < xyz.size() / 2; ++v) EXPECT_EQ(modes.host<double>()[(2 * v + 1) * 3 + 2], xyz[2 * v]);
  EXPECT_EQ(made, 1) << "copies share them";
  EXPECT_EQ(placed.memory_bytes(), xyz.size_bytes());
  EXPECT_FALSE(placed.with_block_size(4).coordinates()) << "of other nodes";
  EXPECT_FALSE(near_null_space_of(placed.with_block_size(1), Dtype::float64));
  Vector given(space, Dtype::float32, 1);
  fill(given, 2.0);
  EXPECT_EQ(near_null_space_of(placed.with_near_null_space(given), Dtype::complex128).columns(), 1) << "what is given counts";
  EXPECT_EQ(near_null_space_of(placed.with_near_null_space(given).with_near_null_space({}), Dtype::float64).columns(), 3);
  EXPECT_THROW(space.with_coordinates(Vector(space, Dtype::float64, 2)), Error) << "a place for each entry";
  EXPECT_THROW(space.with_coordinates(Vector(space.nodes(), Dtype::float32, 2)), Error);
}

namespace {

/// With nothing but apply().
struct ByProducts final : Operator {
  explicit ByProducts(Matrix a) : A(std::move(a)) {}
  Space const& range() const override { return A.range(); }
  Space const& domain() const override { return A.domain(); }
  Dtype dtype() const override { return A.dtype(); }
  void apply(Vector const& x, Vector& y) const override { A.apply(x, y); }
  std::string describe() const override { return "products"; }
  Matrix A;
};

}  // namespace

TEST(Operator, ResultsAreOtherVectorsThanWhatTheyAreMadeOf) {
  auto const& c = world();
  // the last rank has no rows
  auto const n = std::int64_t(20);
  Layout const layout(c, c.rank() + 1 < c.size() || c.size() == 1 ? n : 0);
  std::vector<std::int64_t> i, j;
  std::vector<double> v;
  for (auto r = layout.begin(); r < layout.end(); ++r) i.push_back(r), j.push_back(r), v.push_back(2);
  auto const A = Matrix::from_coo<std::int64_t>(layout, layout, Dtype::float64, i, j, v.data());
  ByProducts const products(A);
  Vector x(layout, A.dtype()), b = x.like(), w = x.like(), y = x.like();
  for (auto* const each : {&x, &b, &w}) fill(*each, 1.0);
  auto const refuses = [](char const* name, auto const& f) {
    try {
      f();
      ADD_FAILURE() << name;
    } catch (Error const& e) {
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("are the same vector"), std::string::npos) << e.what();
    }
  };
  refuses("x and y", [&] { A.apply(x, x); });
  refuses("x and y", [&] { A.apply_transpose(x, x, false); });
  for (Operator const* const M : {static_cast<Operator const*>(&A), static_cast<Operator const*>(&products)}) {
    refuses("b and r", [&] { M->residual(b, x, b); });
    refuses("x and ", [&] { M->residual(b, x, x); });
    refuses("w and y", [&] { M->smooth(b, x, w, w); });
    refuses("b and ", [&] { M->smooth(b, x, w, b); });
    M->residual(b, x, y);  // as before
    EXPECT_EQ(norm(y).real(), std::sqrt(double(layout.global_size())));
  }
}

TEST(Matrix, BadInputNamesTheRow) {
  auto const& c = world();
  Layout const rows(c, 2);
  std::vector<std::int64_t> const ptr{0, 1, 2}, col{0, c.rank() == c.size() - 1 ? 1000 : 0};
  std::vector<double> const val{1, 2};
  try {
    Matrix::from_rows<std::int64_t>(rows, rows, Dtype::float64, ptr, col, val.data());
    FAIL();
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("global row " + std::to_string(2 * c.size() - 1) + " has column 1000"), std::string::npos)
        << e.what();
  }
  Vector x(rows, Dtype::float64), f(rows, Dtype::float32);
  EXPECT_THROW(axpy(1.0, f, x), Error);
}

TEST(Matrix, EmptyMatricesAndRanks) {
  auto const& c = world();
  auto const none = Matrix::from_coo<std::int64_t>(Layout::even(c, 0), Layout::even(c, 0), Dtype::float64, {}, {}, nullptr);
  Vector x(none.domain(), Dtype::float64), y(none.range(), Dtype::float64);
  none.apply(x, y);
  EXPECT_EQ(norm(y).real(), 0);
  Layout const last(c, c.rank() + 1 == c.size() ? 5 : 0);  // all rows on the last rank
  std::vector<std::int64_t> i, j;
  std::vector<double> v;
  if (c.rank() == 0)
    for (std::int64_t r = 0; r < 5; ++r) i.push_back(r), j.push_back(r), v.push_back(double(r + 1));
  auto const D = Matrix::from_coo<std::int64_t>(last, last, Dtype::float64, i, j, v.data());
  Vector a(last, Dtype::float64), b(last, Dtype::float64);
  fill(a, 1.0);
  D.apply(a, b);
  EXPECT_DOUBLE_EQ(dot(a, b).real(), 15);
}
