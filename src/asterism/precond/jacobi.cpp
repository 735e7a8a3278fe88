// z = D^-1 r, and no preconditioner at all.
#include <cmath>

#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& jacobi_table() {
  static OptionTable const t = {
      choice_option("pc_jacobi_type", "diagonal", {"diagonal", "rowl1", "rowmax"},
                    "what divides: the diagonal, the sum or the largest of the absolute values of the row"),
  };
  return t;
}

class Jacobi final : public Preconditioner {
 public:
  Jacobi(Matrix const& A, std::string type) : Preconditioner(A), type_(std::move(type)), inverse_(A.diagonal()) {
    if (type_ != "diagonal")
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const d = inverse_.host<T>();
        for (std::size_t i = 0; i < d.size(); ++i) {
          real_t<T> sum = 0, most = 0;
          for (auto const* block : {&A.diagonal_block(), &A.coupling_block()}) {
            auto const v = block->template entries<T>();
            for (auto p = block->row_offsets()[i]; p < block->row_offsets()[i + 1]; ++p) {
              sum += magnitude(v[std::size_t(p)]);
              most = std::max(most, magnitude(v[std::size_t(p)]));
            }
          }
          d[i] = T(type_ == "rowl1" ? sum : most);
        }
      });
    invert_entries(A, inverse_, "jacobi");
  }
  void apply(Vector const& x, Vector& y) const override { multiply(inverse_, x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    if (!conjugate || !is_complex(dtype_)) return multiply(inverse_, x, y);
    if (!conjugated_) {
      conjugated_ = inverse_.like();
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const from = inverse_.host<T>();
        auto const to = conjugated_.host<T>();
        for (std::size_t i = 0; i < from.size(); ++i) to[i] = conj(from[i]);
      });
    }
    multiply(conjugated_, x, y);
  }
  std::pair<Scalar, Scalar> apply_and_dot(Vector const& x, Vector& y) const override { return multiply_and_dot(inverse_, x, y); }
  std::string describe() const override { return type_ == "diagonal" ? "jacobi" : "jacobi (" + type_ + ")"; }
  std::size_t memory_bytes() const override { return inverse_.data().bytes(); }

 private:
  std::string type_;
  Vector inverse_;
  mutable Vector conjugated_;  // made when asked for
};

class None final : public Preconditioner {
 public:
  using Preconditioner::Preconditioner;
  void apply(Vector const& x, Vector& y) const override { copy(x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool) const override { copy(x, y); }
  bool is_identity() const override { return true; }
  std::string describe() const override { return "none"; }
};

}  // namespace

void invert_entries(Matrix const& A, Vector& d, char const* name) {
  std::int64_t bad = -1;
  with_dtype(d.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const v = d.host<T>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (v[i] == T(0) && bad < 0) bad = A.range().begin() + std::int64_t(i);
      v[i] = v[i] == T(0) ? T(1) : T(1) / v[i];
    }
  });
  comm::agree(A.comm(), [&] {
    ASTERISM_REQUIRE(bad < 0, value,
                     "{}: the diagonal entry of row {} is zero. Use -pc_type ilu with -pc_factor_shift_type nonzero, "
                     "-pc_type jacobi -pc_jacobi_type rowl1, or reorder the equations.",
                     name, bad);
  });
}

PreconditionerEntry jacobi_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(jacobi_table());
            return std::make_shared<Jacobi>(A, r.text("pc_jacobi_type"));
          },
          &jacobi_table(), "division by the diagonal"};
}

PreconditionerPtr none(Operator const& A) { return std::make_shared<None>(A); }

PreconditionerEntry none_entry() {
  static OptionTable const no_options;
  return {[](Nest const&, Matrix const& A) -> PreconditionerPtr { return none(A); }, &no_options, "no preconditioner"};
}

}  // namespace asterism::precond
