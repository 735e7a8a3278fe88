// Sums and updates of vectors in two precisions: what copies into one of them give.
#include <gtest/gtest.h>

#include <limits>

#include "asterism/base/reproducible_sum.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;
using namespace asterism::test;

namespace {

Dtype other_than(Dtype d) { return with_precision_of(d, real_of(d) == Dtype::float32 ? Dtype::float64 : Dtype::float32); }

Vector hashed(comm::Layout const& rows, Dtype dtype, std::int64_t columns, unsigned seed) {
  Vector v(rows, dtype, columns);
  fill_hashed(v, seed);
  return v;
}

Vector copied(Vector const& x, Dtype dtype) {
  Vector out(x.space(), dtype, x.columns());
  copy(x, out);
  return out;
}

void expect_near(Vector const& x, Vector const& y, double epsilon) {
  auto const sizes = norm(y).values();
  auto rest = copied(x, x.dtype());
  axpy(-1.0, y, rest);
  auto const far = norm(rest).values();
  for (std::size_t j = 0; j < far.size(); ++j) EXPECT_LE(far[j].real(), 8 * epsilon * sizes[j].real()) << j;
}

void expect_near(Scalar const& x, Scalar const& y, double size, double epsilon) {
  auto const a = x.values(), b = y.values();
  for (std::size_t j = 0; j < a.size(); ++j) EXPECT_LE(std::abs(a[j] - b[j]), epsilon * size) << j;
}

}  // namespace

TEST(MixedVectors, GiveWhatCopiesInOnePrecisionGive) {
  for (bool const same_bits : {false, true})
    for (auto const dtype : all_dtypes)
      for (std::int64_t const n : {0, 1, 7, 5000})
        for (std::int64_t const k : {1, 3, 9}) {
          SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(n) + " x " + std::to_string(k));
          auto const rows = uneven(world(), n);
          auto const other = other_than(dtype);
          double const own = epsilon_of(dtype);
          auto const p = hashed(rows, dtype, k, 1), q = hashed(rows, dtype, k, 2), y = hashed(rows, other, k, 3);
          auto x = hashed(rows, dtype, k, 4), r = hashed(rows, dtype, k, 5), x1 = copied(x, dtype), r1 = copied(r, dtype);
          std::vector<Scalar::Value> factors;
          for (std::int64_t j = 0; j < k; ++j) factors.emplace_back(0.5 + 0.25 * double(j), is_complex(dtype) ? 0.125 : 0.0);
          Scalar const alpha(factors);
          Vector s(rows, other, k);
          set_reproducible(same_bits);
          auto const one = mixed_update_and_norm2(alpha, p, q, x, r, s), two = update_and_norm2(alpha, p, q, x1, r1);
          expect_near(one, two, 8.0 * double(n), own);
          expect_near(x, x1, own);
          expect_near(r, r1, own);
          expect_near(s, copied(r, other), 0);
          mixed_aypx(alpha, y, x);
          aypx(alpha, copied(y, dtype), x1);
          expect_near(x, x1, own);
          set_reproducible(false);
        }
}

TEST(MixedVectors, ZeroTimesTheOldVectorIsZeroWhateverItHolds) {
  for (auto const dtype : all_dtypes)
    for (std::int64_t const n : {7, 5000})
      for (std::int64_t const k : {1, 3, 9}) {
        auto const rows = uneven(world(), n);
        auto const x = hashed(rows, other_than(dtype), k, 1);
        Vector y(rows, dtype, k);
        fill(y, std::numeric_limits<double>::quiet_NaN());
        auto z = copied(y, dtype);
        mixed_aypx(0.0, x, y);
        expect_near(y, copied(x, dtype), 0);
        aypx(0.0, copied(x, dtype), z);
        expect_near(z, y, 0);
      }
}

TEST(MixedVectors, AreOfTwoPrecisionsAndOneShape) {
  auto const rows = uneven(world(), 20);
  auto const x = hashed(rows, Dtype::float64, 1, 1), two = hashed(rows, Dtype::float32, 2, 1),
             complex = hashed(rows, Dtype::complex64, 1, 1);
  auto y = copied(x, Dtype::float64);
  EXPECT_NE(error_of([&] { mixed_aypx(1.0, x, y); }).find("mixed_aypx: float64 is not the other precision of float64"), std::string::npos);
  EXPECT_NE(error_of([&] { mixed_aypx(1.0, complex, y); }).find("complex64"), std::string::npos);
  EXPECT_NE(error_of([&] { mixed_aypx(1.0, two, y); }).find("differ"), std::string::npos);
}
