// Successive over-relaxation on each rank's own block, symmetric by default: Saad (2003), sec. 4.1.
#include <optional>

#include "asterism/base/profile.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& sor_table() {
  static OptionTable const t = {
      real_option("pc_sor_omega", 1, "relaxation factor", 1e-6, 2 - 1e-6),
      integer_option("pc_sor_its", 1, "sweeps", 1, 1000),
      flag_option("pc_sor_symmetric", true, "forward and backward in each sweep, so that M is symmetric when A is"),
  };
  return t;
}

/// One row of a sweep, all k columns: z_i += omega (b_i - (A z)_i) / a_ii.
template <class T>
void relax_row(la::Csr const& a, std::size_t i, T omega, std::int64_t k, T const* b, T* z) {
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const val = a.entries<T>();
  for (std::int64_t j = 0; j < k; ++j) {
    T s = b[std::int64_t(i) * k + j], d(1);
    for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
      if (std::size_t(col[p]) == i) d = val[p];
      else s -= val[p] * z[std::int64_t(col[p]) * k + j];
    }
    auto& zi = z[std::int64_t(i) * k + j];
    zi = (T(1) - omega) * zi + omega * s / d;
  }
}

class Sor final : public Preconditioner {
 public:
  Sor(Matrix const& A, double omega, std::int64_t its, bool symmetric)
      : Preconditioner(A), block_(A.diagonal_block()), omega_(omega), its_(its), symmetric_(symmetric) {
    auto const d = A.diagonal();
    std::int64_t bad = -1;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = d.host<T>();
      for (std::size_t i = v.size(); i-- > 0;)
        if (v[i] == T(0)) bad = A.range().begin() + std::int64_t(i);
    });
    comm::agree(A.comm(), [&] {
      ASTERISM_REQUIRE(bad < 0, value, "sor: the diagonal entry of row {} is zero. Use -pc_type ilu with -pc_factor_shift_type nonzero.",
                       bad);
    });
  }
  void apply(Vector const& x, Vector& y) const override { sweep(block_, true, symmetric_, x, y); }
  // The sweeps on the transpose, in reverse: backward after forward is the transpose of the same.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    auto& t = transposed_[conjugate && is_complex(dtype_)];
    if (!t) t = la::transpose(block_, conjugate && is_complex(dtype_));
    sweep(*t, symmetric_, true, x, y);
  }
  std::string describe() const override {
    return format("{}, omega {}, {} sweep(s), each rank its own block", symmetric_ ? "ssor" : "sor", omega_, its_);
  }
  bool symmetric() const override { return symmetric_; }

 private:
  void sweep(la::Csr const& a, bool forward, bool backward, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplySOR");
    profile::Scope const scope(event, double(its_ * (forward + backward)) * double(a.nnz()) * (double(size_of(dtype_)) + 4));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_on_host(
          y.context(),
          [a, omega = T(real_t<T>(omega_)), its = its_, forward, backward, k = x.columns()](device::Queue&, T const* b, T* z) {
            auto const n = std::size_t(a.rows);
            std::fill(z, z + std::int64_t(n) * k, T(0));
            for (std::int64_t sweep = 0; sweep < its; ++sweep) {
              for (std::size_t i = 0; forward && i < n; ++i) relax_row<T>(a, i, omega, k, b, z);
              for (std::size_t i = n; backward && i-- > 0;) relax_row<T>(a, i, omega, k, b, z);
            }
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  la::Csr block_;
  mutable std::optional<la::Csr> transposed_[2];  // plain, conjugated; made when asked for
  double omega_;
  std::int64_t its_;
  bool symmetric_;
};

}  // namespace

PreconditionerEntry sor_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(sor_table());
            auto const omega = r.real("pc_sor_omega");
            auto const its = r.integer("pc_sor_its");
            return std::make_shared<Sor>(A, omega, its, r.flag("pc_sor_symmetric"));
          },
          &sor_table(), "(symmetric) successive over-relaxation, each rank on its own rows"};
}

}  // namespace asterism::precond
