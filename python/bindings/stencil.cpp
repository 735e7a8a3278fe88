#include "asterism/stencil/table.hpp"

#include "bindings.hpp"

namespace asterism::python {

using stencil::Table;
using ScalarRow = std::tuple<std::string, int, int, int, std::complex<double>>;
using CodeRow = std::tuple<std::string, int, int, int, int, int, int, std::array<int, 3>>;
using TermRow = std::tuple<int, int, int, std::array<int, 3>>;
using WholeRow = std::tuple<std::int64_t, std::array<std::int64_t, 3>, std::array<std::int64_t, 3>>;
using StoreRow = std::tuple<int, int, int, int, std::array<int, 3>>;

void bind_stencil(nb::module_& m) {
  nb::class_<Table>(m, "StencilTable")
      .def(
          "__init__",
          [](Table* self, std::string const& dtype, std::array<int, 3> const& brick, int missing, bool fine, int registers, int grids,
             int constants, std::vector<ScalarRow> const& scalars, std::vector<CodeRow> const& code, std::vector<TermRow> const& terms,
             std::vector<WholeRow> const& wholes, std::vector<StoreRow> const& stores, std::vector<std::string> const& reductions) {
            Table t;
            t.dtype = dtype_from_name(dtype);
            t.brick = brick, t.missing = missing, t.fine = fine, t.registers = registers, t.grids = grids, t.constants = constants;
            for (auto const& [op, a, b, c, value] : scalars) t.scalars.push_back({stencil::op_from_name(op), a, b, c, value});
            for (auto const& [op, out, a, b, c, first, count, at] : code)
              t.code.push_back({stencil::op_from_name(op), out, a, b, c, first, count, at});
            for (auto const& [scalar, grid, reg, at] : terms) t.terms.push_back({scalar, grid, reg, at});
            for (auto const& [add, f, n] : wholes) t.wholes.push_back({add, f, n});
            for (auto const& [reg, grid, slot, stride, parity] : stores) t.stores.push_back({reg, grid, slot, stride, parity});
            for (auto const& r : reductions)
              t.reductions.push_back(r == "sum"   ? stencil::Reduction::sum
                                     : r == "max" ? stencil::Reduction::maximum
                                                  : stencil::Reduction::minimum);
            t.check();
            new (self) Table(std::move(t));
          },
          nb::kw_only(), nb::arg("dtype"), nb::arg("brick"), nb::arg("missing"), nb::arg("fine"), nb::arg("registers"), nb::arg("grids"),
          nb::arg("constants"), nb::arg("scalars"), nb::arg("code"), nb::arg("terms"), nb::arg("wholes"), nb::arg("stores"),
          nb::arg("reductions"))
      .def_prop_ro("address", [](Table const& t) { return std::uintptr_t(&t); });
  m.attr("stencil_table_address") = std::uintptr_t(&stencil::run_table);
  m.def("stencil_op", [](std::string const& name) { return int(stencil::op_from_name(name)); });
}

}  // namespace asterism::python
