// GMRES(m) with right preconditioning, and its flexible form: Saad and Schultz (1986); Saad (1993);
// Saad (2003), alg. 9.5 and 9.6.
#include <algorithm>
#include <cmath>
#include <utility>

#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

using Value = Scalar::Value;

OptionTable const& gmres_table() {
  static OptionTable const t = {
      integer_option("ksp_gmres_restart", 30, "size of the Krylov basis before a restart", 1, 10000),
  };
  return t;
}

/// min ||beta e_1 - H y|| for a Hessenberg matrix H that grows by columns, by Givens rotations: Saad (2003), sec. 6.5.3.
class HessenbergLeastSquares {
 public:
  explicit HessenbergLeastSquares(std::int64_t most) : R_(std::size_t(most)), c_(std::size_t(most)), s_(std::size_t(most)) {}
  void start(double beta) { g_.assign(1, Value(beta)), columns_ = 0; }
  /// Column j of H is h (j + 1 values), and below it h_next. False if all of that is at most `rounding` after the rotations so far: A M is
  /// singular there, and nothing changes.
  bool add_column(std::vector<Value> h, double h_next, double rounding) {
    auto const j = columns_;
    for (std::size_t i = 0; i < j; ++i) {
      auto const a = h[i], c = h[i + 1];
      h[i] = std::conj(c_[i]) * a + std::conj(s_[i]) * c;
      h[i + 1] = -s_[i] * a + c_[i] * c;
    }
    auto const a = h[j];
    double const length = std::hypot(std::abs(a), h_next);
    if (length <= rounding) return false;
    c_[j] = a / length;
    s_[j] = h_next / length;
    h[j] = length;
    g_.push_back(-s_[j] * g_[j]);
    g_[j] = std::conj(c_[j]) * g_[j];
    R_[j] = std::move(h);
    ++columns_;
    return true;
  }
  std::int64_t columns() const { return std::int64_t(columns_); }
  double residual_norm() const { return std::abs(g_[columns_]); }
  std::vector<Scalar> solution() const {
    std::vector<Value> y(columns_);
    for (auto i = columns_; i-- > 0;) {
      Value sum = g_[i];
      for (auto l = i + 1; l < columns_; ++l) sum -= R_[l][i] * y[l];
      y[i] = sum / R_[i][i];
    }
    return {y.begin(), y.end()};
  }

 private:
  std::vector<std::vector<Value>> R_;  // by columns
  std::vector<Value> c_, s_, g_;       // rotations; the right-hand side, rotated
  std::size_t columns_ = 0;
};

struct Orthogonalised {
  std::vector<Value> h;  ///< coefficients of the vectors before
  double h_next;         ///< norm of what is left
  bool finite;
  double largest() const {
    double most = h_next;
    for (auto const& e : h) most = std::max(most, std::abs(e));
    return most;
  }
};

/// w without its parts along basis vectors 0 to j: classical Gram-Schmidt, again if half of (w, w) was cancelled (Daniel, Gragg, Kaufman
/// and Stewart 1976), which keeps the basis orthogonal to rounding. One message, or three: with a good preconditioner A M is near the
/// identity, and what each vector loses without the second pass multiplies up along the basis.
Orthogonalised orthogonalise(la::Basis const& V, std::int64_t j, Vector& w) {
  Orthogonalised o{std::vector<Value>(std::size_t(j) + 1, Value(0)), 0, true};
  auto const subtract = [&](std::vector<Scalar> const& d) {
    std::vector<Scalar> minus;
    for (std::size_t i = 0; i <= std::size_t(j); ++i) {
      o.h[i] += d[i].value();
      minus.push_back(-d[i]);
    }
    V.add(j + 1, minus, w);
  };
  auto const d = V.dots(j + 2, w);  // the last is (w, w)
  double const ww = d.back().value().real();
  subtract(d);
  double rest = ww;
  for (auto const& e : o.h) rest -= std::norm(e);
  o.h_next = std::sqrt(std::max(rest, 0.0));  // Pythagoras
  if (!(rest > 0.5 * ww)) {
    subtract(V.dots(j + 1, w));
    o.h_next = norm(w).real();
  }
  o.finite = std::isfinite(ww) && std::isfinite(o.largest());
  return o;
}

class Gmres final : public Method {
 public:
  Gmres(std::int64_t restart, bool flexible) : restart_(restart), flexible_(flexible) {}
  std::string name() const override { return flexible_ ? "fgmres" : "gmres"; }
  bool keeps_iterate() const override { return false; }
  bool flexible() const override { return flexible_; }
  Stagnation stagnation(std::int64_t) const override { return {.window = 10 * restart_, .steady = true}; }

  // Per iteration: 1 A, 1 M, 1 message, and (2 j + 7) n values for the j-th basis vector, from 0; 3 messages and (4 j + 13) n values
  // where it is orthogonalised twice. Memory: m + 1 vectors, 2 m + 1 in the flexible form.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    Work w(b, std::min(restart_, std::max<std::int64_t>(b.global_size(), 1)), flexible_);
    monitor.initial_residual(A, b, x, w.r);
    double beta = norm(w.r).real();
    if (monitor.stop(0, beta)) return;
    for (std::int64_t k = 0;;) {
      auto const end = expand_basis(A, M, beta, k, w, monitor);
      if (end == CycleEnd::not_finite) return;  // x stays the last finite iterate
      correct(M, w, x);
      if (monitor.done()) return;
      A.residual(b, x, w.r);  // the true residual starts the next cycle
      double const before = std::exchange(beta, norm(w.r).real());
      if (beta == 0 || !std::isfinite(beta)) {
        monitor.stop(k, beta);
        return;
      }
      // from an initial guess with a large residual one cycle reaches that residual's rounding only; the next one goes on from there
      if (end == CycleEnd::exhausted && !monitor.stop(k, beta) && beta > 0.5 * before) {
        monitor.break_down(Reason::diverged_breakdown, "the Krylov space is exhausted before convergence: the system is singular");
        return;
      }
      if (monitor.done()) return;
    }
  }

 private:
  struct Work {
    Work(Vector const& b, std::int64_t m, bool flexible) : V(b, m + 1), Z(b, flexible ? m : 1), r(b.like()), z(b.like()), H(m), size(m) {}
    la::Basis V, Z;  // of the residuals; of the directions, in the flexible form
    Vector r, z;
    HessenbergLeastSquares H;
    std::int64_t size;
  };
  enum class CycleEnd : std::uint8_t { full, exhausted, not_finite };

  /// One cycle from the residual w.r, of norm beta: basis vectors until there are enough, the monitor stops, or the Krylov space ends.
  CycleEnd expand_basis(Operator const& A, Operator const& M, double beta, std::int64_t& k, Work& work, Monitor& monitor) const {
    auto v0 = work.V[0];
    axpby(1.0 / beta, work.r, 0.0, v0);
    work.H.start(beta);
    for (std::int64_t j = 0; j < work.size; ++j) {
      auto const vj = work.V[j];
      auto zj = flexible_ ? work.Z[j] : work.z;
      auto w = work.V[j + 1];
      M.apply(vj, zj);
      A.apply(zj, w);  // w = A M v_j
      auto o = orthogonalise(work.V, j, w);
      if (!o.finite) {
        monitor.stop(k + 1, std::nan(""));
        return CycleEnd::not_finite;
      }
      double const rounding = 64 * epsilon_of(w.dtype()) * o.largest();
      bool const exhausted = o.h_next <= rounding;
      if (!exhausted) scale(1.0 / o.h_next, w);
      if (!work.H.add_column(std::move(o.h), o.h_next, rounding)) {  // x is improved by the directions before this one
        monitor.break_down(Reason::diverged_breakdown, "A M is singular on the Krylov space: the matrix or the preconditioner is singular");
        return CycleEnd::exhausted;
      }
      bool const stopped = monitor.stop(++k, work.H.residual_norm());
      if (exhausted) return CycleEnd::exhausted;
      if (stopped) break;
    }
    return CycleEnd::full;
  }

  /// x += M V y, or Z y, with the y of the smallest residual.
  void correct(Operator const& M, Work& w, Vector& x) const {
    auto const n = w.H.columns();
    if (n == 0) return;
    if (flexible_) return w.Z.add(n, w.H.solution(), x);
    fill(w.r, 0.0);
    w.V.add(n, w.H.solution(), w.r);
    M.apply(w.r, w.z);
    axpy(1.0, w.z, x);
  }

  std::int64_t restart_;
  bool flexible_;
};

}  // namespace

MethodEntry gmres_entry() {
  return {[](Configuration const& c) {
            auto r = c.reader(gmres_table());
            return std::make_shared<Gmres>(r.integer("ksp_gmres_restart"), false);
          },
          &gmres_table(), "generalised minimal residuals, restarted; any matrix"};
}

MethodEntry fgmres_entry() {
  return {[](Configuration const& c) {
            auto r = c.reader(gmres_table());
            return std::make_shared<Gmres>(r.integer("ksp_gmres_restart"), true);
          },
          &gmres_table(), "flexible gmres: the preconditioner may change in every step; twice the memory"};
}

}  // namespace asterism::krylov
