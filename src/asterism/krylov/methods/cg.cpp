// Conjugate gradients, preconditioned: Hestenes and Stiefel (1952); Saad (2003), alg. 9.1.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class ConjugateGradients final : public Method {
 public:
  explicit ConjugateGradients(bool only_definite) : bad_(only_definite ? Bad::not_positive : Bad::zero) {}
  std::string name() const override { return "cg"; }
  bool needs_symmetric_matrix() const override { return true; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }

  // Per iteration: 1 A, 1 M, 3 messages (2 without M), and 11 n values moved besides A and M; 9 n where M has r^H z in its last
  // pass. What an M in another precision reads and gives is not stored in this one: s is r as M reads it.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    bool const plain = M.is_identity();
    auto const* const inner = M.in_its_precision();
    auto const for_inner = [&] { return Vector(b.space(), inner->dtype(), b.columns(), b.queue()); };
    auto r = b.like(), p = b.like(), q = b.like(), z = plain ? r : inner ? for_inner() : b.like();  // a handle: z is r
    auto s = inner ? for_inner() : r;
    auto const precondition = [&] {  // z = M r; returns r^H z, of r as M reads it
      return inner ? inner->apply_and_dot(s, z) : M.apply_and_dot(r, z);
    };
    monitor.initial_residual(A, b, x, r);
    Scalar const rr0 = real_part(dot(r, r));
    if (monitor.stop(0, sqrt(rr0))) return;
    if (inner) copy(r, s);
    Scalar rz = plain ? rr0 : precondition();
    copy(z, p);
    for (std::int64_t k = 1;; ++k) {
      if (monitor.break_down_if(rz, bad_, Reason::diverged_indefinite_pc,
                                "the preconditioner is not positive definite: r^H M r is not positive"))
        return;
      Scalar const pq = real_part(A.apply_and_dot(p, q));  // q = A p
      if (monitor.break_down_if(pq, bad_, Reason::diverged_indefinite_mat, "the matrix is not positive definite: p^H A p is not positive"))
        return;
      Scalar const active = monitor.active();  // finished columns stand still
      Scalar const alpha = select(active, rz / pq, 0.0);
      // x += alpha p, r -= alpha q
      Scalar const rr = inner ? mixed_update_and_norm2(alpha, p, q, x, r, s) : update_and_norm2(alpha, p, q, x, r);
      if (monitor.stop(k, sqrt(rr))) return;
      Scalar const rz_new = plain ? rr : precondition();
      Scalar const beta = select(active, rz_new / rz, 0.0);
      inner ? mixed_aypx(beta, z, p) : aypx(beta, z, p);  // p = z + beta p
      rz = rz_new;
    }
  }

 private:
  Bad bad_;
};

}  // namespace

MethodEntry cg_entry() {
  static OptionTable const t = {
      flag_option("ksp_cg_single_reduction", false,
                  "one message per iteration (Chronopoulos and Gear); 17 n instead of 11 n values moved besides A and M"),
      flag_option("ksp_cg_only_definite", true,
                  "end where r^H M r or p^H A p is not positive; false: go on as long as they are not zero, which may converge for "
                  "matrices that are negative definite or indefinite"),
  };
  return {[](Configuration const& c) -> std::shared_ptr<Method> {
            auto r = c.reader(t);
            bool const only_definite = r.flag("ksp_cg_only_definite");
            if (!r.flag("ksp_cg_single_reduction")) return std::make_shared<ConjugateGradients>(only_definite);
            ASTERISM_REQUIRE(only_definite, option, "-ksp_cg_only_definite false goes without -ksp_cg_single_reduction.");
            return single_reduction_cg();
          },
          &t, "conjugate gradients; A and the preconditioner Hermitian positive definite"};
}

}  // namespace asterism::krylov
