// Operators that are functions written in Python.
#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "bindings.hpp"

namespace asterism::python {
namespace {

using comm::Layout;
using la::Space;
using la::Vector;

/// y = f(x), f(x, y) being called with arrays of the local parts when the queue comes to it. What it raises on one rank is raised on all.
class FunctionOperator final : public la::Operator {
 public:
  FunctionOperator(Layout range, Layout domain, std::string const& dtype, nb::object const& apply, nb::object const& adjoint,
                   std::optional<ReadArray> const& diagonal, std::string name)
      : range_(std::move(range)),
        domain_(std::move(domain)),
        dtype_(dtype_from_name(dtype)),
        name_(std::move(name)),
        apply_(keep(checked(apply))),
        adjoint_(adjoint.is_none() ? nullptr : keep(checked(adjoint))) {
    has_diagonal_ = diagonal.has_value();
    if (!has_diagonal_) return;
    diagonal_ = Vector(range_, dtype_);
    copy(as_vector(range_, *diagonal, "diagonal"), diagonal_);
  }
  Space const& range() const override { return range_; }
  Space const& domain() const override { return domain_; }
  Dtype dtype() const override { return dtype_; }
  std::string describe() const override { return name_; }
  void apply(Vector const& x, Vector& y) const override {
    comm::collective(range_.comm(), "A @ x", [&] {
      la::require_layout(x, domain_, dtype_, "apply: x");
      la::require_layout(y, range_, dtype_, "apply: y");
      call(*static_cast<PyObject*>(apply_.get()), x, y);
    });
  }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    comm::collective(range_.comm(), "A.H @ x", [&] { transposed(x, y, conjugate); });
  }
  Vector diagonal() const override {
    if (!has_diagonal_) return Operator::diagonal();
    auto out = diagonal_.like();
    copy(diagonal_, out);
    return out;
  }

 private:
  void transposed(Vector const& x, Vector& y, bool conjugate) const {
    la::require_layout(x, range_, dtype_, "apply: x");
    la::require_layout(y, domain_, dtype_, "apply: y");
    ASTERISM_REQUIRE(adjoint_, unsupported, "{} has no adjoint, which this method needs. Give one, or use -ksp_type gmres.", name_);
    auto& f = *static_cast<PyObject*>(adjoint_.get());
    if (conjugate || !is_complex(dtype_)) return call(f, x, y);
    auto conjugated = x.like();  // A^T x = conj(A^H conj(x))
    la::conjugate(x, conjugated);
    call(f, conjugated, y);
    la::conjugate(y, y);
  }
  nb::object checked(nb::object const& f) const {
    auto const comm = range_.comm();
    if (comm.size() == 1) return f;
    return nb::cpp_function([f, comm, name = name_](nb::object const& x, nb::object const& y) {
      try {
        f(x, y);
      } catch (nb::python_error& e) {  // told at once: others may be in messages of the same function
        if (!nb::cast<bool>(nb::getattr(e.value(), "shared", nb::bool_(false)))) {
          auto const what = nb::cast<std::string>(e.type().attr("__name__")) + ": " + nb::str(e.value()).c_str();
          comm::Failures::report(comm, ErrorKind::value, format("the function of {} raised {}", name, what));
        }
        throw;
      }
      GilRelease const gil;
      comm::agree_on(comm, std::nullopt);
    });
  }
  void call(PyObject& f, Vector const& x, Vector& y) const {
    GilAcquire const gil;
    bool const flat = x.columns() == 1;
    submit_function(y.queue(), nb::borrow(nb::handle(&f)), {{x, device::Access::read, flat}, {y, device::Access::write, flat}});
  }

  Space range_, domain_;
  Dtype dtype_;
  std::string name_;
  std::shared_ptr<void> apply_, adjoint_;
  bool has_diagonal_ = false;
  Vector diagonal_;
};

}  // namespace

void bind_operators(nb::module_& m) {
  nb::class_<la::Operator>(m, "Operator")
      .def_prop_ro("rows", [](la::Operator const& A) -> Layout { return A.range(); })
      .def_prop_ro("cols", [](la::Operator const& A) -> Layout { return A.domain(); })
      .def_prop_ro("dtype", [](la::Operator const& A) { return std::string(name_of(A.dtype())); })
      .def("describe", &la::Operator::describe)
      .def("apply",
           [](la::Operator const& A, ReadArray const& x, AnyArray const& y) {
             auto const xv = as_vector(A.domain(), x, "A @ x");
             auto yv = as_vector(A.range(), y, "A @ x");
             GilRelease const gil;
             A.apply(xv, yv);
           })
      .def("apply_add",
           [](la::Operator const& A, ReadArray const& x, AnyArray const& y) {
             auto const xv = as_vector(A.domain(), x, "y += A @ x");
             auto yv = as_vector(A.range(), y, "y += A @ x");
             GilRelease const gil;
             A.apply_add(xv, yv);
           })
      .def("apply_adjoint", [](la::Operator const& A, ReadArray const& x, AnyArray const& y) {
        auto const xv = as_vector(A.range(), x, "A.H @ x");
        auto yv = as_vector(A.domain(), y, "A.H @ x");
        GilRelease const gil;
        A.apply_transpose(xv, yv, true);
      });
  nb::class_<FunctionOperator, la::Operator>(m, "FunctionOperator")
      .def(nb::init<Layout, Layout, std::string, nb::object, nb::object, std::optional<ReadArray>, std::string>(), nb::arg("rows"),
           nb::arg("cols"), nb::arg("dtype"), nb::arg("apply"), nb::arg("adjoint").none(), nb::arg("diagonal").none(), nb::arg("name"));
}

}  // namespace asterism::python
