// Incomplete LU without fill, on each rank's own block: Meijerink and van der Vorst (1977); Saad (2003), alg. 10.4.
#include <algorithm>
#include <cmath>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& ilu_table() {
  static OptionTable const t = {
      choice_option("pc_factor_shift_type", "none", {"none", "nonzero", "positive_definite"},
                    "what is done about a pivot that is (nearly) zero, or not positive"),
      real_option("pc_factor_shift_amount", 1e-10, "shift, relative to the largest entry of the row", 0),
      real_option("pc_factor_zeropivot", 2.3e-14, "a pivot below this times the largest entry of its row counts as zero", 0),
  };
  return t;
}

/// The pattern of A's diagonal block with the diagonal added where it is missing.
template <class T>
la::Csr with_full_diagonal(la::Csr const& a) {
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const val = a.entries<T>();
  std::int64_t missing = 0;
  auto const has = [&](std::int32_t r) {
    return std::binary_search(col.begin() + ptr[std::size_t(r)], col.begin() + ptr[std::size_t(r) + 1], r);
  };
  for (std::int32_t r = 0; r < a.rows; ++r) missing += !has(r);
  la::Csr f(a.dtype, a.rows, a.cols, a.nnz() + missing);
  auto* fp = f.offsets.as<std::int64_t>();
  auto* fc = f.columns.as<std::int32_t>();
  auto* fv = f.values.as<T>();
  std::int64_t at = 0;
  for (std::int32_t r = 0; r < a.rows; ++r) {
    fp[r] = at;
    bool placed = has(r);
    for (auto p = std::size_t(ptr[std::size_t(r)]); p < std::size_t(ptr[std::size_t(r) + 1]); ++p) {
      if (!placed && col[p] > r) fc[at] = r, fv[at++] = T(0), placed = true;
      fc[at] = col[p];
      fv[at++] = val[p];
    }
    if (!placed) fc[at] = r, fv[at++] = T(0);
  }
  return f;
}

class Ilu final : public Preconditioner {
 public:
  Ilu(Matrix const& A, std::string const& shift, double amount, double zero_pivot) : Preconditioner(A) {
    static int const event = profile::event("PCSetUpILU");
    profile::Scope const scope(event);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      factors_ = with_full_diagonal<T>(A.diagonal_block());
      comm::agree(A.comm(), [&] { factor<T>(shift, amount, zero_pivot, A.range().begin()); });
    });
    if (auto const all = A.comm().sum(shifted_); all > 0 && A.comm().rank() == 0)
      log::info("ilu: {} pivot(s) were shifted (-pc_factor_shift_type {}).", all, shift);
  }

  // One pass over the factors: nnz (8 + 4) bytes and 3 n values.
  void apply(Vector const& x, Vector& y) const override {
    static int const event = profile::event("PCApplyILU");
    profile::Scope const scope(event, double(factors_.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(factors_.nnz()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_on_host(
          y.context(),
          [f = factors_, diagonal = diagonal_, k = x.columns()](device::Queue&, T const* b, T* z) {
            auto const ptr = f.row_offsets();
            auto const col = f.column_indices();
            auto const val = f.template entries<T>();
            auto const n = std::size_t(f.rows);
            for (std::size_t i = 0; i < n; ++i)
              for (std::int64_t j = 0; j < k; ++j) {
                T s = b[std::int64_t(i) * k + j];
                for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p) s -= val[p] * z[std::int64_t(col[p]) * k + j];
                z[std::int64_t(i) * k + j] = s;
              }
            for (std::size_t i = n; i-- > 0;)
              for (std::int64_t j = 0; j < k; ++j) {
                T s = z[std::int64_t(i) * k + j];
                auto const d = std::size_t((*diagonal)[i]);
                for (auto p = d + 1; p < std::size_t(ptr[i + 1]); ++p) s -= val[p] * z[std::int64_t(col[p]) * k + j];
                z[std::int64_t(i) * k + j] = s * val[d];  // the inverse pivot is stored
              }
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  // U^T by columns, then L^T: the rows of the factors are scattered instead of gathered.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    static int const event = profile::event("PCApplyTransposeILU");
    profile::Scope const scope(event, double(factors_.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(factors_.nnz()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_on_host(
          y.context(),
          [f = factors_, diagonal = diagonal_, k = x.columns(), conjugate](device::Queue&, T const* b, T* z) {
            auto const ptr = f.row_offsets();
            auto const col = f.column_indices();
            auto const val = f.template entries<T>();
            auto const n = std::size_t(f.rows);
            auto const entry = [&](std::size_t p) { return conjugate ? conj(val[p]) : val[p]; };
            std::copy_n(b, std::int64_t(n) * k, z);
            for (std::size_t i = 0; i < n; ++i) {
              auto const d = std::size_t((*diagonal)[i]);
              auto* const zi = z + std::int64_t(i) * k;
              for (std::int64_t j = 0; j < k; ++j) zi[j] *= entry(d);  // the inverse pivot
              for (auto p = d + 1; p < std::size_t(ptr[i + 1]); ++p)
                for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * zi[j];
            }
            for (std::size_t i = n; i-- > 0;)
              for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p)
                for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * z[std::int64_t(i) * k + j];
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  std::string describe() const override { return format("ilu(0), each rank its own block{}", shifted_ ? ", shifted" : ""); }
  std::size_t memory_bytes() const override { return factors_.values.bytes() + factors_.columns.bytes() + factors_.offsets.bytes(); }

 private:
  template <class T>
  void factor(std::string const& shift, double amount, double zero_pivot, std::int64_t first_row) {
    auto const ptr = factors_.row_offsets();
    auto const col = factors_.column_indices();
    auto const val = factors_.entries<T>();
    auto const n = std::size_t(factors_.rows);
    auto diagonal = std::make_shared<std::vector<std::int64_t>>(n);
    for (std::size_t i = 0; i < n; ++i)
      (*diagonal)[i] = std::lower_bound(col.begin() + ptr[i], col.begin() + ptr[i + 1], std::int32_t(i)) - col.begin();
    diagonal_ = diagonal;
    std::vector<std::int64_t> where(n, -1);  // position of a column in the row at hand
    for (std::size_t i = 0; i < n; ++i) {
      double largest = 0;
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        where[std::size_t(col[p])] = std::int64_t(p);
        largest = std::max(largest, double(magnitude(val[p])));
      }
      for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p) {
        auto const k = std::size_t(col[p]);
        val[p] *= val[std::size_t((*diagonal)[k])];  // l_ik = a_ik / u_kk
        for (auto q = std::size_t((*diagonal)[k]) + 1; q < std::size_t(ptr[k + 1]); ++q)
          if (auto const at = where[std::size_t(col[q])]; at >= 0) val[std::size_t(at)] -= val[p] * val[q];
      }
      auto& pivot = val[std::size_t((*diagonal)[i])];
      bool const zero = !(double(magnitude(pivot)) > zero_pivot * largest);
      if (shift == "positive_definite" && !(double(real(pivot)) > zero_pivot * largest)) {
        pivot = T(real_t<T>(std::max(amount * largest, double(magnitude(pivot)))));
        ++shifted_;
      } else if (zero && shift == "nonzero") {
        double const s = amount * (largest > 0 ? largest : 1);
        pivot = T(real_t<T>(double(real(pivot)) < 0 ? -s : s));
        ++shifted_;
      } else {
        ASTERISM_REQUIRE(!zero, value,
                         "ilu: the pivot of row {} is {}, beside entries up to {}. Use -pc_factor_shift_type nonzero, or reorder "
                         "the equations.",
                         first_row + std::int64_t(i), double(magnitude(pivot)), largest);
      }
      pivot = T(1) / pivot;
      ASTERISM_REQUIRE(std::isfinite(double(magnitude(pivot))), value, "ilu: the inverse pivot of row {} is not finite.",
                       first_row + std::int64_t(i));
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) where[std::size_t(col[p])] = -1;
    }
  }

  la::Csr factors_;  // L below, U above, inverse pivots on the diagonal
  std::shared_ptr<std::vector<std::int64_t> const> diagonal_;
  std::int64_t shifted_ = 0;
};

}  // namespace

PreconditionerEntry ilu_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(ilu_table());
            auto const shift = r.text("pc_factor_shift_type");
            auto const amount = r.real("pc_factor_shift_amount");
            return std::make_shared<Ilu>(A, shift, amount, r.real("pc_factor_zeropivot"));
          },
          &ilu_table(), "incomplete LU without fill, each rank on its own block"};
}

}  // namespace asterism::precond
