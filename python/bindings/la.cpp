#include "bindings.hpp"

#include "asterism/apps/gallery.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/precond/amg/block_size.hpp"

namespace asterism::python {

using comm::Communicator;
using comm::Layout;
using la::Matrix;
using la::Vector;

Dtype dtype_of_array(ReadArray const& a) {
  if (a.dtype() == nb::dtype<float>()) return Dtype::float32;
  if (a.dtype() == nb::dtype<double>()) return Dtype::float64;
  if (a.dtype() == nb::dtype<std::complex<float>>()) return Dtype::complex64;
  if (a.dtype() == nb::dtype<std::complex<double>>()) return Dtype::complex128;
  fail(ErrorKind::dtype, "an array has a dtype other than float32, float64, complex64, complex128.");
}

namespace {
template <class A>
Vector wrapped(la::Space const& space, A const& a, char const* what) {
  ASTERISM_REQUIRE(a.ndim() == 1 || a.ndim() == 2, shape, "{}: an array of shape (n) or (n, k) is needed, not one of {} dimensions.", what,
                   a.ndim());
  auto const n = std::int64_t(a.shape(0)), k = a.ndim() == 2 ? std::int64_t(a.shape(1)) : 1;
  ASTERISM_REQUIRE(n == space.local_size(), shape, "{}: the array has {} rows, but rank {} owns {} of the {}.", what, n,
                   space.comm().rank(), space.local_size(), space.global_size());
  auto const d = dtype_of_array(ReadArray(a));
  return Vector::wrap(space, d, k, la::Array::wrap(const_cast<void*>(a.data()), std::size_t(n * k) * size_of(d), nullptr));
}
}  // namespace

Vector as_vector(la::Space const& space, AnyArray const& a, char const* what) { return wrapped(space, a, what); }
Vector const as_vector(la::Space const& space, ReadArray const& a, char const* what) { return wrapped(space, a, what); }

nb::object coordinates_array(la::Space const& space) {
  auto const& xyz = space.coordinates();
  if (!xyz) return nb::none();
  auto out = new_array(xyz.dtype(), {std::size_t(xyz.local_size()), std::size_t(xyz.columns())});
  auto v = as_vector(xyz.space(), nb::cast<AnyArray>(out), "coordinates");
  copy(xyz, v);
  return out;
}

nb::object new_array(Dtype d, std::vector<std::size_t> const& shape) {
  nb::object np = nb::module_::import_("numpy");
  nb::list s;
  for (auto const n : shape) s.append(n);
  return np.attr("empty")(nb::tuple(s), std::string(name_of(d)));
}

namespace {

template <class I>
Matrix from_rows(Layout const& rows, Layout const& cols, nb::ndarray<I const, nb::device::cpu, nb::c_contig> const& ptr,
                 nb::ndarray<I const, nb::device::cpu, nb::c_contig> const& col, ReadArray const& values) {
  auto const d = dtype_of_array(values);
  GilRelease gil;
  comm::agree(rows.comm(), [&] {
    auto const entries = ptr.size() > 0 ? std::int64_t(ptr.data()[ptr.size() - 1]) : 0;
    ASTERISM_REQUIRE(std::int64_t(values.size()) >= entries, shape,
                     "from_rows: {} values for the {} entries that the row offsets count. Give one for each.", values.size(), entries);
  });
  return Matrix::from_rows<I>(rows, cols, d, {ptr.data(), ptr.size()}, {col.data(), col.size()}, values.data());
}

}  // namespace

void bind_la(nb::module_& m) {
  nb::class_<Matrix, la::Operator>(m, "Matrix")
      .def_static("from_rows32", &from_rows<std::int32_t>)
      .def_static("from_rows64", &from_rows<std::int64_t>)
      .def_static("from_coo",
                  [](Layout const& rows, Layout const& cols, nb::ndarray<std::int64_t const, nb::device::cpu, nb::c_contig> const& i,
                     nb::ndarray<std::int64_t const, nb::device::cpu, nb::c_contig> const& j, ReadArray const& v) {
                    auto const d = dtype_of_array(v);
                    GilRelease gil;
                    comm::agree(rows.comm(), [&] {
                      auto const e =
                          std::min(i.size(), j.size()) == v.size() ? la::first_not_finite(d, std::int64_t(v.size()), v.data()) : -1;
                      ASTERISM_REQUIRE(e < 0, value,
                                       "coo: entry {}, at ({}, {}), is NaN or infinite. Look for a division by zero or an overflow "
                                       "where it is computed.",
                                       e, i.data()[e], j.data()[e]);
                    });
                    return Matrix::from_coo<std::int64_t>(rows, cols, d, {i.data(), i.size()}, {j.data(), j.size()}, v.data());
                  })
      .def(
          "with_storage",
          [](Matrix const& a, std::string const& storage) {
            auto const number = std::int64_t(storage == "auto" ? 0 : storage == "symmetric" ? 1 : storage == "hermitian" ? 2 : 3);
            auto const least = a.comm().min(number);
            comm::agree(a.comm(), [&] {
              ASTERISM_REQUIRE(number < 3, value,
                               "there is no storage '{}' to choose. Storages: auto, symmetric (A^T = A), hermitian (A^H = A).", storage);
              ASTERISM_REQUIRE(number == least, value, "with_storage: '{}' on rank {}, another on others. Give the same on all.", storage,
                               a.comm().rank());
            });
            if (storage == "auto") return a.general();
            return a.symmetric(storage == "symmetric" ? la::SymmetricHalf::Kind::symmetric : la::SymmetricHalf::Kind::hermitian);
          },
          nb::call_guard<GilRelease>())
      .def("with_values",
           [](Matrix const& a, ReadArray const& values) {
             auto const dtype = dtype_of_array(values);
             GilRelease const gil;
             comm::agree(a.comm(), [&] {
               auto const e = la::first_not_finite(dtype, std::int64_t(values.size()), values.data());
               if (e < 0 || std::int64_t(values.size()) != a.local_nnz()) return;
               auto const offsets = a.to_rows().offsets;
               fail(ErrorKind::value,
                    "with_values: value {} is NaN or infinite; it belongs to row {}. Look for a division by zero or an overflow "
                    "where it is computed.",
                    e, a.range().begin() + (std::upper_bound(offsets.begin(), offsets.end(), e) - offsets.begin()) - 1);
             });
             return a.with_values(dtype, std::int64_t(values.size()), values.data());
           })
      .def_prop_ro("comm", [](Matrix const& a) { return a.comm(); })
      .def_prop_ro("nnz", &Matrix::nnz)
      .def_prop_ro("local_nnz", &Matrix::local_nnz)
      .def_prop_ro("product_bytes", [](Matrix const& a) { return a.product_bytes(); })
      .def_prop_ro("storage", [](Matrix const& a) { return std::string(a.storage_name()); })
      .def_prop_ro("half",
                   [](Matrix const& a) -> std::string {
                     if (!a.half()) return "";
                     return a.half()->kind() == la::SymmetricHalf::Kind::hermitian ? "hermitian" : "symmetric";
                   })
      .def("shared", &Matrix::shared)
      .def("frobenius_norm", &Matrix::frobenius_norm, nb::call_guard<GilRelease>())
      .def_prop_ro("memory_bytes", [](Matrix const& a) { return a.memory_bytes() + a.range().memory_bytes(); })
      .def_prop_rw(
          "block_size", [](Matrix const& a) { return a.range().block_size(); },
          [](Matrix& a, std::int64_t bs) {
            GilRelease const gil;
            a.set_space(a.range().with_block_size(bs));
          })
      .def("detected_block_size", &precond::amg::detected_block_size, nb::call_guard<GilRelease>())
      .def("apply_repeatedly",
           [](Matrix const& a, ReadArray const& x, AnyArray const& y, int times) {
             auto const xv = as_vector(a.domain(), x, "A @ x");
             auto yv = as_vector(a.range(), y, "A @ x");
             GilRelease gil;
             for (int i = 0; i < times; ++i) a.apply(xv, yv);
           })
      .def("apply_transpose",
           [](Matrix const& a, ReadArray const& x, AnyArray const& y, bool conjugate) {
             auto const xv = as_vector(a.range(), x, "A.T @ x");
             auto yv = as_vector(a.domain(), y, "A.T @ x");
             GilRelease gil;
             a.apply_transpose(xv, yv, conjugate);
           })
      .def("diagonal",
           [](Matrix const& a) {
             auto out = new_array(a.dtype(), {std::size_t(a.range().local_size())});
             auto v = as_vector(a.range(), nb::cast<AnyArray>(out), "diagonal");
             auto const d = a.diagonal();
             copy(d, v);
             return out;
           })
      .def("converted", [](Matrix const& a, std::string const& d) { return a.converted(dtype_from_name(d)); })
      .def("to_rows",
           [](Matrix const& a) {
             auto const rows = a.to_rows();
             nb::object np = nb::module_::import_("numpy");
             nb::object ptr = np.attr("empty")(rows.offsets.size(), "int64"), col = np.attr("empty")(rows.columns.size(), "int64");
             auto val = new_array(rows.dtype, {rows.columns.size()});
             std::copy(rows.offsets.begin(), rows.offsets.end(), nb::cast<nb::ndarray<std::int64_t>>(ptr).data());
             std::copy(rows.columns.begin(), rows.columns.end(), nb::cast<nb::ndarray<std::int64_t>>(col).data());
             std::memcpy(nb::cast<AnyArray>(val).data(), rows.values.raw(), rows.columns.size() * size_of(rows.dtype));
             return nb::make_tuple(ptr, col, val);
           })
      .def("set_near_null_space",
           [](Matrix& a, ReadArray const& b) {
             auto const view = as_vector(a.range(), b, "near_null_space");
             Vector own(a.range(), a.dtype(), view.columns());
             copy(view, own);
             GilRelease const gil;
             la::attach_near_null_space(a, std::move(own));
           })
      .def("set_coordinates",
           [](Matrix& a, nb::ndarray<double const, nb::device::cpu, nb::c_contig, nb::ndim<2>> const& xyz) {
             GilRelease const gil;
             la::attach_coordinates(a, {xyz.data(), xyz.size()}, std::int64_t(xyz.shape(1)));
           })
      .def("coordinates", [](Matrix const& a) { return coordinates_array(a.range()); })
      .def(
          "near_null_space",
          [](Matrix const& a, bool made) -> nb::object {
            auto const& given = a.range().near_null_space();
            auto const b = given || !made ? given : la::near_null_space_of(a.range(), a.dtype());
            if (!b) return nb::none();
            auto out = new_array(b.dtype(), {std::size_t(b.local_size()), std::size_t(b.columns())});
            auto v = as_vector(a.range(), nb::cast<AnyArray>(out), "near_null_space");
            copy(b, v);
            return out;
          },
          nb::arg("made") = true)
      .def("residual_norms", [](Matrix const& a, ReadArray const& b, ReadArray const& x) {
        auto const bv = as_vector(a.range(), b, "residual"), xv = as_vector(a.domain(), x, "residual");
        GilRelease gil;
        auto r = bv.like();
        a.residual(bv, xv, r);
        std::vector<double> out;
        for (auto const& v : norm(r).values()) out.push_back(v.real());
        return out;
      });

  m.def("norms", [](Layout const& layout, ReadArray const& x) {
    auto const v = as_vector(layout, x, "norm");
    GilRelease gil;
    std::vector<double> out;
    for (auto const& n : norm(v).values()) out.push_back(n.real());
    return out;
  });
  m.def("fill_hashed", [](Layout const& layout, AnyArray const& x, std::uint64_t seed) {
    auto v = as_vector(layout, x, "fill_hashed");
    fill_hashed(v, seed);
  });

  m.def(
      "poisson",
      [](Communicator const& c, std::vector<std::int64_t> const& shape, std::string const& dtype, bool box, bool neumann,
         std::vector<double> const& epsilon) { return apps::poisson(c, shape, dtype_from_name(dtype), {box, neumann, epsilon}); },
      nb::call_guard<GilRelease>());
  m.def(
      "convection_diffusion",
      [](Communicator const& c, std::vector<std::int64_t> const& shape, double epsilon, std::vector<double> const& w,
         std::string const& dtype) { return apps::convection_diffusion(c, shape, epsilon, w, dtype_from_name(dtype)); },
      nb::call_guard<GilRelease>());
  m.def(
      "diffusion",
      [](Communicator const& c, std::vector<std::int64_t> const& shape, double contrast, std::int64_t block, double stretch,
         std::string const& dtype) { return apps::diffusion(c, shape, dtype_from_name(dtype), {contrast, block, stretch}); },
      nb::call_guard<GilRelease>());
  m.def(
      "rotated_anisotropy",
      [](Communicator const& c, std::array<std::int64_t, 2> shape, double epsilon, double theta, std::string const& dtype) {
        return apps::rotated_anisotropy(c, shape, epsilon, theta, dtype_from_name(dtype));
      },
      nb::call_guard<GilRelease>());
  m.def(
      "elasticity",
      [](Communicator const& c, std::array<std::int64_t, 3> cells, double E, double nu, std::string const& dtype) {
        return apps::elasticity(c, cells, E, nu, dtype_from_name(dtype));
      },
      nb::call_guard<GilRelease>());
  m.def(
      "laplace_q2",
      [](Communicator const& c, std::array<std::int64_t, 3> cells, std::string const& dtype, std::array<std::int64_t, 3> nodes,
         std::array<std::int64_t, 3> processes) { return apps::laplace_q2(c, cells, dtype_from_name(dtype), {nodes, processes}); },
      nb::call_guard<GilRelease>());
  bind_assembly(m);
  bind_submatrix(m);
  bind_products(m);
}

}  // namespace asterism::python
