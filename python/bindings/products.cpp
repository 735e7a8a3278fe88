#include "asterism/la/products/matrix_product.hpp"

#include "bindings.hpp"

namespace asterism::python {
namespace {

/// (matrix, its form: 0 plain, 1 transposed, 2 conjugate transposed)
using GivenFactor = std::pair<la::Matrix, int>;

std::vector<la::Factor> factors_of(std::vector<GivenFactor> const& given) {
  std::vector<la::Factor> out;
  for (auto const& [matrix, form] : given) out.push_back({matrix, la::Form(form)});
  return out;
}

}  // namespace

void bind_products(nb::module_& m) {
  using la::ProductPlan;
  m.def("matrix_product", [](std::vector<GivenFactor> const& given) {
    GilRelease const gil;
    return la::product(factors_of(given));
  });
  m.def("matrix_sum", &la::sum, nb::call_guard<GilRelease>());
  m.def("matrix_scaled", &la::scaled, nb::call_guard<GilRelease>());
  m.def("matrix_transposed", &la::transposed, nb::call_guard<GilRelease>());
  nb::class_<ProductPlan>(m, "ProductPlan")
      .def("__init__",
           [](ProductPlan* self, std::vector<GivenFactor> const& given) {
             GilRelease const gil;
             new (self) ProductPlan(factors_of(given));
           })
      .def_prop_ro("first", &ProductPlan::first)
      .def("multiply", [](ProductPlan const& plan, std::vector<la::Matrix> const& matrices) {
        GilRelease const gil;
        return plan.multiply(matrices);
      });
}

}  // namespace asterism::python
