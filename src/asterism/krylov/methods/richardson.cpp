// Richardson iteration x += M (b - A x), and `preonly`: the preconditioner once, as a direct solver is used.
#include <algorithm>

#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

OptionTable const& richardson_table() {
  static OptionTable const t = {real_option("ksp_richardson_scale", 1, "damping of each step", 0)};
  return t;
}

/// x += scale M r where columns still iterate, and then r = b - A x. z: made where it is needed. fresh: x is 0, and r anything.
void step(Operator const& A, Operator const& M, Vector const& b, Vector& r, Vector& x, Vector& z, Monitor const& monitor, double scale,
          bool fresh) {
  bool const all = monitor.all_iterate();
  if (all && scale == 1 && M.improve(A, b, x, r, fresh)) return;
  if (fresh && all) {
    M.apply(b, x);
    if (scale != 1) la::scale(scale, x);
  } else {
    if (!z) z = x.like();
    M.apply(fresh ? b : r, z);
    axpy(select(monitor.active(), scale, 0.0), z, x);
  }
  A.residual(b, x, r);
}

/// Of the residual where a method starts, which is b if x is zero: whose norm is known then, but where a solver is within another.
Scalar first_norm(Vector const& r, Monitor const& monitor, bool fresh) {
  std::vector<Scalar::Value> known;
  for (auto const& t : monitor.targets()) known.push_back(t.norm_b);
  bool const all = std::all_of(known.begin(), known.end(), [](auto const& v) { return v.real() > 0; });
  return fresh && all ? Scalar(std::move(known)) : norm(r);
}

class Richardson final : public Method {
 public:
  explicit Richardson(double scale) : scale_(scale) {}
  std::string name() const override { return "richardson"; }
  Stagnation stagnation(std::int64_t) const override { return {.window = 1000, .steady = true}; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }
  bool linear() const override { return true; }

  bool ends_with_true_residual() const override { return true; }

  // Per iteration: 1 A, 1 M, 1 message, and 6 n values moved; 3 n in the first one from a zero guess, and 1 n where M improves x itself.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto r = b.like();
    Vector z;
    bool fresh = monitor.from_zero();
    if (!fresh) A.residual(b, x, r);
    bool done = monitor.stop(0, first_norm(fresh ? b : r, monitor, fresh));
    for (std::int64_t k = 1; !done; ++k) {
      step(A, M, b, r, x, z, monitor, scale_, fresh);
      fresh = false;
      done = monitor.stop(k, norm(r));
    }
  }

 private:
  double scale_;
};

class PreconditionerOnly final : public Method {
 public:
  std::string name() const override { return "preonly"; }
  bool blocks_columns() const override { return true; }
  bool linear() const override { return true; }

  bool ends_with_true_residual() const override { return true; }

  // 1 M and, to report what was reached, 2 A (1 from a zero guess). One step; a resumed solve makes it iterative refinement.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto r = b.like();
    Vector z;
    bool const fresh = monitor.from_zero();
    if (!fresh) A.residual(b, x, r);
    if (monitor.stop(0, first_norm(fresh ? b : r, monitor, fresh))) return;
    step(A, M, b, r, x, z, monitor, 1, fresh);
    if (!monitor.stop(1, norm(r))) monitor.break_down(Reason::start_again, "");
  }
};

}  // namespace

MethodEntry richardson_entry() {
  return {[](Configuration const& c) {
            auto r = c.reader(richardson_table());
            return std::make_shared<Richardson>(r.real("ksp_richardson_scale"));
          },
          &richardson_table(), "x += scale M (b - A x): the preconditioner as a solver"};
}

MethodEntry preonly_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<PreconditionerOnly>(); }, &none,
          "applies the preconditioner once: for direct solvers"};
}

}  // namespace asterism::krylov
