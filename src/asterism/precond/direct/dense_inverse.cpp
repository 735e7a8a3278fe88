#include "asterism/precond/direct/dense_inverse.hpp"

#include <cmath>
#include <cstring>

#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/exchange.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/precond/direct/dense_product.kernels.hpp"
#include "asterism/precond/direct/lapack.hpp"

namespace asterism::precond {
namespace {

OptionTable const& table() {
  static OptionTable const t = {
      integer_option("pc_lu_max_size", 8000, "largest number of rows that is factored as a dense matrix", 1, 40000),
  };
  return t;
}

/// All rows of A on every rank, dense, row-major.
template <class T>
std::vector<T> gathered_dense(Matrix const& A) {
  auto const n = A.global_rows();
  auto const rows = A.to_rows();
  struct Entry {
    std::int64_t i, j;
    T v;
  };
  std::vector<Entry> mine;
  mine.reserve(rows.columns.size());
  for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r)
    for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p)
      mine.push_back({A.range().begin() + std::int64_t(r), rows.columns[std::size_t(p)], rows.values.as<T>()[p]});
  auto const all = A.comm().all_gather_bytes(std::as_bytes(std::span<Entry const>(mine)));
  std::vector<T> dense(std::size_t(checked_product(n, n, "dense matrix")), T(0));
  for (std::size_t e = 0; e < all.size() / sizeof(Entry); ++e) {
    Entry x;
    std::memcpy(&x, all.data() + e * sizeof(Entry), sizeof x);
    dense[std::size_t(x.i * n + x.j)] += x.v;
  }
  return dense;
}

}  // namespace

DenseInverse::DenseInverse(Matrix const& A, Dtype target) : Preconditioner(A) {
  static int const event = profile::event("PCSetUpDense");
  profile::Scope const scope(event);
  auto const wide = with_precision_of(A.dtype(), Dtype::float64);
  auto const B = A.converted(wide);
  dtype_ = with_precision_of(A.dtype(), target);
  with_dtype(wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int const n = int(A.global_rows());
    auto a = gathered_dense<T>(B);  // row-major A is column-major A^T: the inverse comes out as it went in
    double norm = 0;
    for (int i = 0; i < n; ++i) {
      double s = 0;
      for (int j = 0; j < n; ++j) s += double(magnitude(a[std::size_t(i) * std::size_t(n) + std::size_t(j)]));
      norm = std::max(norm, s);
    }
    // the bits depend on the number of threads
    lapack::Threads const threads(n <= 1000 || reproducible() ? 1 : device::host::team_size());
    std::vector<int> pivots(std::size_t(std::max(n, 1)));
    if (n > 0) lapack::getrf(n, a.data(), pivots.data());
    double smallest = norm;
    auto const at = [&](int i) -> T& { return a[std::size_t(i) * std::size_t(n) + std::size_t(i)]; };
    for (int i = 0; i < n; ++i) smallest = std::min(smallest, double(magnitude(at(i))));
    rcond_ = norm > 0 ? smallest / norm : 0;
    // a vanishing pivot belongs to a null vector: an enormous pivot takes that direction out
    for (int i = 0; i < n; ++i)
      if (!(double(magnitude(at(i))) > 1e-13 * norm)) at(i) = T(norm > 0 ? norm * 1e30 : 1.0);
    std::vector<T> work(std::size_t(n) * 64 + 1);
    if (n > 0) {
      int const info = lapack::getri(n, a.data(), pivots.data(), work.data(), int(work.size()));
      ASTERISM_REQUIRE(info == 0, breakdown, "the dense inverse of a {} x {} level failed (LAPACK info {}).", n, n, info);
    }
    rows_ = device::Array(std::size_t(A.range().local_size()) * std::size_t(n) * size_of(dtype_));
    with_dtype(dtype_, [&](auto low) {
      using S = typename decltype(low)::type;
      if constexpr (is_complex_v<S> == is_complex_v<T>) {
        auto const* from = a.data() + A.range().begin() * n;
        for (std::int64_t i = 0; i < A.range().local_size() * n; ++i) rows_.as<S>()[i] = S(from[i]);
      }
    });
  });
}

void DenseInverse::apply(Vector const& x, Vector& y) const {
  static int const event = profile::event("PCApplyDense");
  profile::Scope const scope(event, double(rows_.bytes()), 2 * double(layout_.local_size() * layout_.global_size() * x.columns()));
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const& comm = layout_.comm();
    auto const k = x.columns();
    auto all = x.data();
    if (comm.size() > 1) {
      all = device::Array::fresh(y.context(), std::size_t(layout_.global_size() * k) * sizeof(T));
      device::submit_on_host(
          y.context(),
          [comm, n = std::size_t(layout_.local_size() * k)](device::Queue&, std::byte*, T const* mine, T* to) {
            auto const bytes = comm.all_gather_bytes(std::as_bytes(std::span<T const>(mine, n)));
            std::memcpy(to, bytes.data(), bytes.size());
          },
          device::update<std::byte>(comm.lane()), device::read<T>(x.data()), device::write<T>(all));
    }
    device::submit(y.context(), kernel::dense_product<T>, layout_.local_size(), layout_.global_size(), k, device::read<T>(rows_),
                   device::read<T>(all), device::write<T>(y.data()));
  });
}

void DenseInverse::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_without_form(
        y.context(),
        [rows = rows_, layout = layout_, k = x.columns(), conjugate](device::Queue&, std::byte*, T const* b, T* z) {
          auto const n = layout.global_size(), m = layout.local_size();
          std::vector<double> sums(std::size_t(2 * n * k), 0.0);  // what my rows give to each, real and imaginary parts
          auto const* a = rows.template as<T>();
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t c = 0; c < n; ++c) {
              T const v = conjugate ? conj(a[i * n + c]) : a[i * n + c];
              for (std::int64_t j = 0; j < k; ++j) {
                T const t = v * b[i * k + j];
                sums[std::size_t(2 * (c * k + j))] += double(real(t));
                sums[std::size_t(2 * (c * k + j)) + 1] += double(imag(t));
              }
            }
          layout.comm().sum(std::span<double>(sums));
          for (std::int64_t i = 0; i < m * k; ++i) {
            auto const at = std::size_t(2 * (layout.begin() * k + i));
            z[i] = from_complex<T>({sums[at], sums[at + 1]});
          }
        },
        device::update<std::byte>(layout_.comm().lane()), device::read<T>(x.data()), device::write<T>(y.data()));
  });
}

std::string DenseInverse::describe() const { return format("lu (dense inverse of {} rows)", layout_.global_size()); }

PreconditionerEntry lu_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(table());
            auto const most = r.integer("pc_lu_max_size");
            ASTERISM_REQUIRE(A.global_rows() <= most, unsupported,
                             "lu: {} rows are more than the {} that are factored as a dense matrix; a sparse direct solver is not "
                             "there yet. Use an iterative method, or raise -pc_lu_max_size.",
                             A.global_rows(), most);
            auto p = std::make_shared<DenseInverse>(A, A.dtype());
            ASTERISM_REQUIRE(p->reciprocal_condition() > 1e-300 || A.global_rows() == 0, value,
                             "lu: the matrix is singular: a pivot is zero.");
            return p;
          },
          &table(), "direct solution; dense, for small systems"};
}

}  // namespace asterism::precond
