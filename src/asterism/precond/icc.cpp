// Incomplete Cholesky without fill on each rank's own block, as L D L^H: Meijerink and van der Vorst (1977).
#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/precond/pivots.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& icc_table() {
  static OptionTable const t = Pivots::options();
  return t;
}

class Icc final : public Preconditioner {
 public:
  Icc(Matrix const& A, Pivots pivots) : Preconditioner(A), pivots_(std::move(pivots)) {
    comm::agree(A.comm(), [&] { lower_ = places_below(A.diagonal_block()); });
    update(A);
  }
  bool update(Matrix const& A) override {
    static int const event = profile::event("PCSetUpICC");
    profile::Scope const scope(event);
    comm::agree(A.comm(), [&] {
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        pivots_.factor<T>(A.diagonal_block(), [&](la::Csr const& a) { factor<T>(a); });
      });
    });
    pivots_.tell(A.comm());
    return true;
  }

  // One pass down and one up half of the factors: nnz (8 + 4) bytes in all, and 4 n values.
  void apply(Vector const& x, Vector& y) const override { run(x, y, false); }
  // M is Hermitian: its transpose is its conjugate.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override { run(x, y, !conjugate && is_complex(dtype_)); }
  std::string describe() const override { return format("icc(0), each rank its own block{}", pivots_.shifted() ? ", shifted" : ""); }
  std::size_t memory_bytes() const override {
    return lower_.values.bytes() + lower_.columns.bytes() + lower_.offsets.bytes() + inverse_.bytes();
  }

 private:
  /// Those of a below the diagonal; values are not set.
  static la::Csr places_below(la::Csr const& a) {
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const before_diagonal = [&](std::size_t i) {
      return std::lower_bound(col.begin() + ptr[i], col.begin() + ptr[i + 1], std::int32_t(i));
    };
    std::vector<std::int64_t> offsets{0};
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i) offsets.push_back(offsets.back() + (before_diagonal(i) - (col.begin() + ptr[i])));
    la::Csr out(a.dtype, a.rows, a.rows, offsets.back());
    std::copy(offsets.begin(), offsets.end(), out.row_offsets().begin());
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i)
      std::copy(col.begin() + ptr[i], before_diagonal(i), out.column_indices().begin() + offsets[i]);
    return out;
  }

  template <class T>
  void factor(la::Csr const& a) {
    auto const n = std::size_t(a.rows);
    lower_.values = device::Array(lower_.values.bytes());  // a queue may still read the old ones
    inverse_ = device::Array(n * sizeof(T));
    auto const ap = a.row_offsets(), ptr = lower_.row_offsets();
    auto const ac = a.column_indices(), col = lower_.column_indices();
    auto const av = a.entries<T>(), val = lower_.entries<T>();
    auto* const inverse = inverse_.as<T>();
    std::vector<T> row(n, T(0));  // l_ik d_k of the row at hand
    for (std::size_t i = 0; i < n; ++i) {
      T pivot(0);
      double largest = 0;
      auto at = std::size_t(ptr[i]);
      for (auto p = std::size_t(ap[i]); p < std::size_t(ap[i + 1]); ++p) {
        auto const k = std::size_t(ac[p]);
        largest = std::max(largest, double(magnitude(av[p])));
        if (k == i) pivot = T(real(av[p]));
        if (k >= i) continue;
        T s = av[p];  // a_ik - sum over j < k of l_ij d_j conj(l_kj)
        for (auto q = std::size_t(ptr[k]); q < std::size_t(ptr[k + 1]); ++q) s -= row[std::size_t(col[q])] * conj(val[q]);
        row[k] = s;
        val[at++] = s * inverse[k];
      }
      for (auto q = std::size_t(ptr[i]); q < at; ++q) {
        pivot -= T(real(row[std::size_t(col[q])] * conj(val[q])));
        row[std::size_t(col[q])] = T(0);
      }
      inverse[i] = pivots_.inverse(pivot, largest, i);
    }
  }

  void run(Vector const& x, Vector& y, bool conjugated) const {
    static int const event = profile::event("PCApplyICC");
    profile::Scope const scope(event, 2 * double(lower_.nnz()) * (double(size_of(dtype_)) + 4), 4 * double(lower_.nnz()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_without_form(
          y.context(),
          [l = lower_, inverse = inverse_, k = x.columns(), conjugated](device::Queue&, T const* b, T* z) {
            auto const ptr = l.row_offsets();
            auto const col = l.column_indices();
            auto const val = l.template entries<T>();
            auto const* d = inverse.template as<T>();
            auto const entry = [&](std::size_t p) { return conjugated ? conj(val[p]) : val[p]; };
            auto const n = std::size_t(l.rows);
            for (std::size_t i = 0; i < n; ++i)
              for (std::int64_t j = 0; j < k; ++j) {
                T s = b[std::int64_t(i) * k + j];
                for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) s -= entry(p) * z[std::int64_t(col[p]) * k + j];
                z[std::int64_t(i) * k + j] = s;
              }
            for (std::size_t i = 0; i < n; ++i)
              for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(i) * k + j] *= d[i];
            for (std::size_t i = n; i-- > 0;)
              for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p)
                for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= conj(entry(p)) * z[std::int64_t(i) * k + j];
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  Pivots pivots_;
  la::Csr lower_;          // strictly; its diagonal is ones
  device::Array inverse_;  // of D
};

}  // namespace

PreconditionerEntry icc_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(icc_table());
            return std::make_shared<Icc>(A, Pivots(r, "icc", A.range().begin()));
          },
          &icc_table(), "incomplete Cholesky of the lower triangle, each rank on its own block; half the memory of ilu"};
}

}  // namespace asterism::precond
