// GMRES(m) with right preconditioning, and its flexible form: Saad and Schultz (1986); Saad (1993);
// Saad (2003), alg. 9.5 and 9.6.
#include <algorithm>
#include <cmath>

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
    auto const m = std::min(restart_, std::max<std::int64_t>(b.global_size(), 1));
    la::Basis const V(b, m + 1), Z(b, flexible_ ? m : 1);
    auto r = b.like(), z = b.like();
    std::vector<std::vector<Value>> H(static_cast<std::size_t>(m));  // column j: R after rotation
    std::vector<Value> cs(static_cast<std::size_t>(m)), sn(static_cast<std::size_t>(m)), g(static_cast<std::size_t>(m) + 1);
    monitor.initial_residual(A, b, x, r);
    double beta = norm(r).real();
    if (monitor.stop(0, beta)) return;
    for (std::int64_t k = 0;;) {
      auto v0 = V[0];
      axpby(1.0 / beta, r, 0.0, v0);
      std::fill(g.begin(), g.end(), Value(0));
      g[0] = beta;
      std::int64_t j = 0;
      bool happy = false, stopped = false;
      for (; j < m && !happy && !stopped; ++j) {
        auto const vj = V[j];
        auto zj = flexible_ ? Z[j] : z;
        auto w = V[j + 1];
        M.apply(vj, zj);
        A.apply(zj, w);  // w = A M v_j
        // classical Gram-Schmidt; again if much was cancelled: as stable as modified, in one message or three
        std::vector<Value> h(static_cast<std::size_t>(j) + 2, Value(0));
        auto const subtract = [&](std::vector<Scalar> const& d) {
          std::vector<Scalar> minus;
          for (std::int64_t i = 0; i <= j; ++i) {
            h[std::size_t(i)] += d[std::size_t(i)].value();
            minus.push_back(-d[std::size_t(i)]);
          }
          V.add(j + 1, minus, w);
        };
        auto const d = V.dots(j + 2, w);  // the last is (w, w)
        double const ww = d.back().value().real();
        subtract(d);
        double rest = ww;
        for (std::int64_t i = 0; i <= j; ++i) rest -= std::norm(h[std::size_t(i)]);
        double h_next = std::sqrt(std::max(rest, 0.0));  // Pythagoras
        if (!(rest > 0.01 * ww)) {
          subtract(V.dots(j + 1, w));
          h_next = norm(w).real();
        }
        double h_scale = h_next;
        for (auto const& e : h) h_scale = std::max(h_scale, std::abs(e));
        if (!std::isfinite(h_scale) || !std::isfinite(ww)) {
          monitor.stop(k + 1, std::nan(""));
          return;  // x stays the last finite iterate
        }
        double const rounding = 64 * epsilon_of(b.dtype()) * h_scale;
        happy = h_next <= rounding;  // the Krylov space is exhausted
        if (!happy) scale(1.0 / h_next, w);
        // Givens rotations turn the Hessenberg column into one of R
        for (std::int64_t i = 0; i < j; ++i) {
          auto const a = h[std::size_t(i)], c = h[std::size_t(i) + 1];
          h[std::size_t(i)] = std::conj(cs[std::size_t(i)]) * a + std::conj(sn[std::size_t(i)]) * c;
          h[std::size_t(i) + 1] = -sn[std::size_t(i)] * a + cs[std::size_t(i)] * c;
        }
        auto const a = h[std::size_t(j)];
        double const length = std::hypot(std::abs(a), h_next);
        if (length <= rounding) {  // x is improved by the directions before this one
          monitor.break_down(Reason::diverged_breakdown,
                             "A M is singular on the Krylov space: the matrix or the preconditioner is singular");
          break;
        }
        cs[std::size_t(j)] = a / length;
        sn[std::size_t(j)] = h_next / length;
        h[std::size_t(j)] = length;
        h.resize(std::size_t(j) + 1);
        g[std::size_t(j) + 1] = -sn[std::size_t(j)] * g[std::size_t(j)];
        g[std::size_t(j)] = std::conj(cs[std::size_t(j)]) * g[std::size_t(j)];
        H[std::size_t(j)] = std::move(h);
        ++k;
        stopped = monitor.stop(k, std::abs(g[std::size_t(j) + 1]));
      }
      // x += M V y with R y = g
      std::vector<Scalar> y(static_cast<std::size_t>(j));
      std::vector<Value> yv(static_cast<std::size_t>(j));
      for (auto i = j - 1; i >= 0; --i) {
        Value s = g[std::size_t(i)];
        for (auto l = i + 1; l < j; ++l) s -= H[std::size_t(l)][std::size_t(i)] * yv[std::size_t(l)];
        yv[std::size_t(i)] = s / H[std::size_t(i)][std::size_t(i)];
        y[std::size_t(i)] = yv[std::size_t(i)];
      }
      if (j > 0) {
        if (flexible_) {
          Z.add(j, y, x);
        } else {
          fill(r, 0.0);
          V.add(j, y, r);
          M.apply(r, z);
          axpy(1.0, z, x);
        }
      }
      if (monitor.done()) return;
      A.residual(b, x, r);  // the true residual starts the next cycle
      beta = norm(r).real();
      if (beta == 0 || !std::isfinite(beta)) {
        monitor.stop(k, beta);
        return;
      }
      if (happy && !monitor.stop(k, beta)) {
        monitor.break_down(Reason::diverged_breakdown, "the Krylov space is exhausted before convergence: the system is singular");
        return;
      }
      if (monitor.done()) return;
    }
  }

 private:
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
