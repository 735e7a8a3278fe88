#include "asterism/direct/foreign/taken_factors.hpp"
#include "asterism/la/matrix.hpp"
#include "bindings.hpp"

namespace asterism::python {

/// Factors that came from another library. Triangles are matrices of one process.
void bind_factors(nb::module_& m) {
  using direct::foreign::TakenFactors;
  nb::class_<TakenFactors>(m, "TakenFactors")
      .def("__init__",
           [](TakenFactors* self, la::Matrix const& l_by_columns, la::Matrix const& u_by_rows, std::vector<std::int32_t> const& perm_r,
              std::vector<std::int32_t> const& perm_c, std::vector<double> row_scale) {
             GilRelease const gil;
             new (self) TakenFactors(l_by_columns.diagonal_block(), u_by_rows.diagonal_block(), perm_r, perm_c, std::move(row_scale));
           })
      .def("solve",
           [](TakenFactors const& f, std::string const& trans, std::int64_t columns, AnyArray const& b) {
             ASTERISM_REQUIRE(std::int64_t(b.nbytes()) == columns * f.size() * std::int64_t(size_of(f.dtype())), shape,
                              "factors: b has {} bytes for {} columns of {} numbers.", b.nbytes(), columns, f.size());
             void* const x = b.data();
             GilRelease const gil;
             f.solve(trans.at(0), columns, x);
           })
      .def("determinant",
           [](TakenFactors const& f) {
             auto const d = f.determinant();
             return nb::make_tuple(std::complex<double>(d.re, d.im), d.log);
           })
      .def("condition", &TakenFactors::condition, nb::call_guard<GilRelease>())
      .def_prop_ro("nnz", &TakenFactors::nnz)
      .def_prop_ro("memory_bytes", &TakenFactors::memory_bytes);
}

}  // namespace asterism::python
