// IDR(s), induced dimension reduction with bi-orthogonalised residuals: van Gijzen and Sonneveld (2011), algorithm 913, with right
// preconditioning.
#include <cmath>

#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

using Value = Scalar::Value;

class IDR final : public Method {
 public:
  explicit IDR(std::int64_t s) : s_(s) {}
  std::string name() const override { return "idr"; }
  Stagnation stagnation(std::int64_t) const override { return short_recurrences; }

  // Per iteration, of which a cycle has s + 1: 1 A, 1 M, 2 messages, and (4 s + 22) n values moved besides A and M. 3 s + 3 vectors.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const s = std::min(s_, std::max<std::int64_t>(b.global_size(), 1));
    auto const count = std::size_t(s);
    auto r = b.like(), v = b.like(), t = b.like();
    la::Basis const P(b, s), G(b, s), U(b, s);
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    for (std::int64_t j = 0; j < s; ++j) {  // the shadow space: orthonormal, the same on any number of ranks
      auto p = P[j], g = G[j], u = U[j];
      fill_hashed(p, std::uint64_t(97 + j + 64 * monitor.vain_starts()));
      for (int pass = 0; pass < 2 && j > 0; ++pass) P.add(j, negated(P.dots(j, p)), p);
      auto const length = norm(p).real();
      scale(length > 0 ? 1 / length : 0.0, p);
      fill(g, 0.0);
      fill(u, 0.0);
    }
    std::vector<Value> m(count * count, Value(0));  // P^H G: lower triangular
    auto const at = [&](std::int64_t i, std::int64_t j) -> Value& { return m[std::size_t(i * s + j)]; };
    for (std::int64_t i = 0; i < s; ++i) at(i, i) = 1;
    Value omega = 1;
    for (std::int64_t it = 1;;) {
      auto f = values(P.dots(s, r));
      for (std::int64_t k = 0; k < s; ++k, ++it) {
        std::vector<Value> c(count, Value(0));
        for (auto i = k; i < s; ++i) {
          c[std::size_t(i)] = f[std::size_t(i)];
          for (auto j = k; j < i; ++j) c[std::size_t(i)] -= at(i, j) * c[std::size_t(j)];
          c[std::size_t(i)] /= at(i, i);
        }
        copy(r, v);
        std::vector<Scalar> plus(c.begin(), c.end());
        G.add(s, negated(plus), v);  // v = r - G c, orthogonal to the later shadows
        M.apply(v, t);
        auto g = G[k], u = U[k];
        scale(c[std::size_t(k)], u);
        plus[std::size_t(k)] = 0.0;
        U.add(s, plus, u);
        axpy(omega, t, u);  // u = U c + omega M v
        A.apply(u, g);
        // orthogonal to the earlier shadows
        auto pg = values(P.dots(s, g));
        std::vector<Scalar> minus(count, Scalar(0.0));
        for (std::int64_t i = 0; i < k; ++i) {
          auto const alpha = pg[std::size_t(i)] / at(i, i);
          minus[std::size_t(i)] = -alpha;
          for (auto j = i; j < s; ++j) pg[std::size_t(j)] -= alpha * at(j, i);
        }
        if (k > 0) {
          G.add(k, minus, g);
          U.add(k, minus, u);
        }
        for (auto i = k; i < s; ++i) at(i, k) = pg[std::size_t(i)];
        if (monitor.break_down_if(std::abs(at(k, k)), Bad::zero, Reason::start_again,
                                  "the shadow space is orthogonal to A M v; try another -ksp_idr_s"))
          return;
        auto const beta = f[std::size_t(k)] / at(k, k);
        Scalar const rr = update_and_norm2(beta, u, g, x, r);  // x += beta u, r -= beta g
        if (monitor.stop(it, sqrt(rr))) return;
        for (auto i = k + 1; i < s; ++i) f[std::size_t(i)] -= beta * at(i, k);
      }
      M.apply(r, v);
      A.apply(v, t);
      std::pair<Vector const*, Vector const*> const pairs[] = {{&t, &t}, {&t, &r}, {&r, &r}};
      auto const d = values(dots(pairs));
      double const tt = d[0].real(), rr = d[2].real(), cosine = std::abs(d[1]) / std::sqrt(tt * rr);
      if (monitor.break_down_if(std::abs(d[1]), Bad::zero, Reason::start_again, "(A M r, r) is zero")) return;
      omega = d[1] / tt;
      if (cosine < 0.7) omega *= 0.7 / cosine;  // Sleijpen and van der Vorst (1995): the residual's step stays useful
      Scalar const norm2 = update_and_norm2(omega, v, t, x, r);
      if (monitor.stop(it++, sqrt(norm2))) return;
    }
  }

 private:
  static std::vector<Scalar> negated(std::vector<Scalar> v) {
    for (auto& a : v) a = -a;
    return v;
  }
  static std::vector<Value> values(std::vector<Scalar> const& v) {
    std::vector<Value> out;
    for (auto const& a : v) out.push_back(a.value());
    return out;
  }
  std::int64_t s_;
};

}  // namespace

MethodEntry idr_entry() {
  static OptionTable const t = {integer_option("ksp_idr_s", 4, "dimensions of the shadow space", 1, 64)};
  return {[](Configuration const& c) { return std::make_shared<IDR>(c.reader(t).integer("ksp_idr_s")); }, &t,
          "induced dimension reduction; any matrix, short recurrences; the larger s, the fewer products"};
}

}  // namespace asterism::krylov
