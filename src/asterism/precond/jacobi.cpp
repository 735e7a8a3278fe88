// z = D^-1 r, and no preconditioner at all.
#include <algorithm>
#include <atomic>
#include <limits>

#include "asterism/base/lazy.hpp"
#include "asterism/device/parallel.hpp"
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
  /// Only the diagonal is asked of an A without entries.
  /// prefix: for errors.
  Jacobi(Operator const& A, std::string type, std::string prefix) : Preconditioner(A), type_(std::move(type)), prefix_(std::move(prefix)) {
    set_values(A);
  }
  bool update(Matrix const& A) override {
    set_values(A);
    return true;
  }
  void apply(Vector const& x, Vector& y) const override { multiply(inverse_, x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    if (!conjugate || !is_complex(dtype_)) return multiply(inverse_, x, y);
    multiply(conjugated_.made_by([&] {
      auto out = inverse_.like();
      la::conjugate(inverse_, out);
      return out;
    }),
             x, y);
  }
  Scalar apply_and_dot(Vector const& x, Vector& y) const override { return multiply_and_dot(inverse_, x, y); }
  std::string describe() const override { return type_ == "diagonal" ? "jacobi" : "jacobi (" + type_ + ")"; }
  std::size_t memory_bytes() const override { return inverse_.data().bytes(); }

 private:
  void set_values(Operator const& A) {
    inverse_ = A.diagonal();
    conjugated_ = {};
    if (type_ != "diagonal") {
      ASTERISM_REQUIRE(A.matrix(), unsupported, "jacobi: -{}pc_jacobi_type {} needs the entries of rows, and A is {}.", prefix_, type_,
                       A.describe());
      take_rows(*A.matrix());
    }
    invert_entries(inverse_, "jacobi", A.matrix() != nullptr, prefix_);
  }
  void take_rows(Matrix const& A) {
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
  }
  std::string type_, prefix_;
  Vector inverse_;
  mutable Lazy<Vector> conjugated_;  // made when asked for
};

class None final : public Preconditioner {
 public:
  using Preconditioner::Preconditioner;
  void apply(Vector const& x, Vector& y) const override { copy(x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool) const override { copy(x, y); }
  bool is_identity() const override { return true; }
  bool update(Matrix const&) override { return true; }
  std::string describe() const override { return "none"; }
};

}  // namespace

void invert_entries(Vector& d, char const* name, bool has_entries, std::string const& prefix) {
  constexpr auto none = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> bad{none};  // the first row
  with_dtype(d.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::Executor executor;
    device::parallel_ranges(executor, d.local_size(), [&bad, v = d.host<T>().data()](std::int64_t begin, std::int64_t end) {
      auto first = none;
      for (auto i = begin; i < end; ++i) {
        if (v[i] == T(0)) first = std::min(first, i);
        v[i] = v[i] == T(0) ? T(1) : T(1) / v[i];
      }
      for (auto known = bad.load(); first < known && !bad.compare_exchange_weak(known, first);) {
      }
    });
  });
  comm::agree(d.comm(), [&] {
    ASTERISM_REQUIRE(bad == none, value, "{}: the diagonal entry of {} is zero. {}.", name, d.space().own_entry_name(bad),
                     has_entries ? format("Use -{}pc_type lu, -{}pc_type ilut -{}pc_factor_matching true, or -{}pc_type jacobi "
                                          "-{}pc_jacobi_type rowl1",
                                          prefix, prefix, prefix, prefix, prefix)
                                 : format("Give points that stand for nothing a 1 there, or use -{}pc_type none", prefix));
  });
}

PreconditionerPtr jacobi(Operator const& A) { return std::make_shared<Jacobi>(A, "diagonal", ""); }

PreconditionerEntry jacobi_entry() {
  auto const make = [](Nest const& nest, Operator const& A) -> PreconditionerPtr {
    return std::make_shared<Jacobi>(A, nest.config.reader(jacobi_table()).text("pc_jacobi_type"), nest.config.prefix);
  };
  return {make, &jacobi_table(), "division by the diagonal", false,
          [make](Nest const& nest, OperatorPtr const& A) { return make(nest, *A); }};
}

PreconditionerPtr none(Operator const& A) { return std::make_shared<None>(A); }

PreconditionerEntry none_entry() {
  static OptionTable const no_options;
  return {[](Nest const&, Matrix const& A) -> PreconditionerPtr { return none(A); }, &no_options, "no preconditioner", false,
          [](Nest const&, OperatorPtr const& A) { return none(*A); }};
}

}  // namespace asterism::precond
