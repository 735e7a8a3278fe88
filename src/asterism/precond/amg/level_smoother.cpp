#include "asterism/precond/amg/level_smoother.hpp"

#include <algorithm>
#include <mutex>

#include "asterism/device/parallel.hpp"
#include "asterism/la/largest_eigenvalue.hpp"

namespace asterism::precond::amg {
namespace {

/// Part of the spectrum that a polynomial of the first kind damps.
constexpr double ratio = 8;

struct Weights {
  Vector w;
  double reach = 0;  ///< the spectrum of W A is not beyond it
};

/// SPAI-0: w_i = conj(a_ii) / sum_j |a_ij|^2, the diagonal closest to the inverse (Broeker et al. 2001). rowl1: of the sums of magnitudes
/// (Baker, Falgout, Kolev and Yang 2011, which bound the spectrum by 1). Else 1 / a_ii.
template <class T>
Weights weights_of(Rows<T> const& A, Layout const& layout, RowFacts<T> const& facts, bool spai, bool l1, double radius, Dtype dtype) {
  Weights out{Vector(layout, dtype), radius};
  device::Executor executor;
  double most = 0;
  std::mutex mutex;
  with_dtype(dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    if constexpr (is_complex_v<W> == is_complex_v<T>) {
      device::parallel_ranges(executor, A.count, [&, w = out.w.host<W>().data()](std::int64_t begin, std::int64_t end) {
        double reach = 0;
        for (auto i = begin; i < end; ++i) {
          T const d = facts.diagonal[i];
          auto const squares = facts.squares[i];
          real_t<T> sum = 0;
          for (auto p = A.ptr[i]; l1 && p < A.ptr[i + 1]; ++p) sum += magnitude(A.val[p]);
          auto const size = magnitude(d);
          T weight(0);
          if (spai) weight = squares > 0 ? conj(d) * T(real_t<T>(1) / squares) : T(0);
          else if (!(d == T(0))) weight = l1 ? conj(d) * T(real_t<T>(1) / (size * sum)) : T(1) / d;
          w[i] = W(weight);
          reach = std::max(reach, double(magnitude(weight)) * double(size));
        }
        std::lock_guard const lock(mutex);
        most = std::max(most, reach);
      });
    } else {
      ASTERISM_ASSERT(false);
    }
  });
  if (l1) out.reach = std::min(1.0, radius);
  else if (spai) out.reach = layout.comm().max(most) * radius;
  return out;
}

}  // namespace

OptionTable const& smoother_table() {
  static OptionTable const t = {
      choice_option("mg_levels_ksp_type", "auto", {"auto", "richardson", "chebyshev"},
                    "smoother of the levels: steps, or a polynomial; auto: one step of spai0 for well-scaled matrices near M-matrices, "
                    "else a polynomial whose degree a trial finds"),
      choice_option(
          "mg_levels_pc_type", "auto", {"auto", "spai0", "jacobi", "sor", "color_sor", "ilu", "icc"},
          "what the smoother multiplies residuals with; sor, ilu and icc work within each rank, color_sor over all; auto: spai0, of "
          "chebyshev jacobi"),
      choice_option("mg_levels_pc_jacobi_type", "diagonal", {"diagonal", "rowl1"}, "jacobi divides by the diagonal, or by sums of rows"),
      choice_option("mg_levels_ksp_chebyshev_kind", "opt_fourth", {"first", "fourth", "opt_fourth"},
                    "polynomial: of the first kind, of the fourth, or of the fourth with optimal coefficients"),
      integer_option("mg_levels_ksp_max_it", -1,
                     "steps before the coarse correction, or the degree of the polynomial; -1: 1, of chebyshev 2", -1, 100),
      integer_option("mg_levels_up_ksp_max_it", -1, "the same after it; -1: as many. Others than before make multigrid unsymmetric", -1,
                     100),
  };
  return t;
}

SmootherOptions smoother_options(Nest const& nest, OptionReader& r) {
  SmootherOptions o;
  o.method = r.text("mg_levels_ksp_type");
  o.kind = r.text("mg_levels_pc_type");
  o.l1 = r.text("mg_levels_pc_jacobi_type") == "rowl1";
  auto const kind = r.text("mg_levels_ksp_chebyshev_kind");
  for (auto const k : {ChebyshevKind::first, ChebyshevKind::fourth, ChebyshevKind::opt_fourth})
    if (kind == name_of(k)) o.chebyshev = k;
  auto const before = r.integer("mg_levels_ksp_max_it"), after = r.integer("mg_levels_up_ksp_max_it");
  if (o.method == "auto" && r.given("mg_levels_ksp_chebyshev_kind")) o.method = "chebyshev";
  bool const polynomial = o.method == "chebyshev";
  ASTERISM_REQUIRE(polynomial || !r.given("mg_levels_ksp_chebyshev_kind"), option,
                   "multigrid: -mg_levels_ksp_chebyshev_kind has no effect with -mg_levels_ksp_type {}. Use chebyshev.", o.method);
  ASTERISM_REQUIRE(before != 0 || after > 0, option,
                   "multigrid: -mg_levels_ksp_max_it {} and -mg_levels_up_ksp_max_it {} leave no step of the smoother. Give one of them "
                   "at least 1.",
                   before, after);
  o.given_before = before;
  o.given_after = after;
  o.steps = o.steps_or(polynomial ? 2 : 1);
  if (o.method == "auto" && (o.kind != "auto" || r.given("mg_levels_pc_jacobi_type"))) o.method = "richardson";
  if (o.kind == "auto" && !o.is_open()) o.kind = o.method == "chebyshev" || r.given("mg_levels_pc_jacobi_type") ? "jacobi" : "spai0";
  ASTERISM_REQUIRE(o.method != "chebyshev" || !o.needs_matrix(), option,
                   "multigrid: -mg_levels_ksp_type chebyshev goes with -mg_levels_pc_type jacobi or spai0, not with {}. Use richardson.",
                   o.kind);
  ASTERISM_REQUIRE(!r.given("mg_levels_pc_jacobi_type") || o.kind == "jacobi", option,
                   "multigrid: -mg_levels_pc_jacobi_type {} goes with -mg_levels_pc_type jacobi, not {}.", o.l1 ? "rowl1" : "diagonal",
                   o.kind);
  auto const degree = std::max(o.steps.before, o.steps.after);
  ASTERISM_REQUIRE(o.method != "chebyshev" || o.chebyshev != ChebyshevKind::opt_fourth || degree <= most_opt_fourth, option,
                   "multigrid: the optimal coefficients are known up to degree {}, not {}. Use -mg_levels_ksp_chebyshev_kind fourth.",
                   most_opt_fourth, degree);
  o.nest = nest;
  return o;
}

void SmootherOptions::keep_options() {
  if (!is_nested()) return;
  kept_ = std::make_shared<Kept>(Kept{*nest.config.options, {}});
  nest.config.options = &kept_->options;
  nest.config.record = &kept_->record;
}

SmootherOptions SmootherOptions::chosen(bool spai) const {
  auto o = *this;
  o.method = spai ? "richardson" : "chebyshev";
  o.kind = spai ? "spai0" : "jacobi";
  o.steps = steps_or(spai ? 1 : 2);
  if (std::max(o.steps.before, o.steps.after) > most_opt_fourth) o.chebyshev = ChebyshevKind::fourth;
  return o;
}

Steps SmootherOptions::steps_or(std::int64_t usual) const {
  Steps out;
  out.before = given_before >= 0 ? given_before : usual;
  out.after = given_after >= 0 ? given_after : out.before;
  return out;
}

template <class T>
SmootherPtr smoother_of_rows(SmootherOptions const& o, Rows<T> const& A, Layout const& layout, RowFacts<T> const& facts, double radius,
                             Dtype dtype) {
  bool const spai = o.kind == "spai0";
  auto name = spai ? std::string("spai0") : o.l1 ? "l1-jacobi" : "jacobi";
  auto [w, reach] = weights_of(A, layout, facts, spai, o.l1, radius, dtype);
  if (o.method == "chebyshev") return chebyshev_smoother({std::move(w), reach / ratio, reach, 0, o.chebyshev}, o.steps, std::move(name));
  // SPAI-0 may diverge, unlike damped Jacobi: W A must have its spectrum below 2
  if (spai && reach > 1.9) scale(1.9 / reach, w);
  if (!spai && !o.l1) scale(4.0 / 3 / radius, w);
  return weighted_steps(std::move(w), o.steps, std::move(name));
}

SmootherPtr smoother_of_matrix(SmootherOptions const& o, Matrix const& A, bool hermitian) {
  if (o.kind == "sor" || o.kind == "color_sor")
    return gauss_seidel(A, o.kind == "sor" ? SweepOrder::ranks : SweepOrder::colours, o.steps, hermitian);
  auto M = o.nest.make_inner(o.nest.config.nested("mg_levels_"), A, o.kind);
  M->set_hermitian(hermitian);
  double damping = 1;
  if (hermitian && M->symmetric()) {  // as SPAI-0: M A must have its spectrum below 2
    auto const found = la::extreme_eigenvalues(A, *M, Vector(A.range(), A.dtype()), 10);
    damping = std::min(1.0, 1.9 / (1.1 * found.most));
  }
  return preconditioned_steps(std::move(M), o.steps, damping, true);
}

template SmootherPtr smoother_of_rows(SmootherOptions const&, Rows<double> const&, Layout const&, RowFacts<double> const&, double, Dtype);
template SmootherPtr smoother_of_rows(SmootherOptions const&, Rows<Complex<double>> const&, Layout const&, RowFacts<Complex<double>> const&,
                                      double, Dtype);

}  // namespace asterism::precond::amg
