// Grids in bricks and stencils on them.
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <array>

#include "asterism/grid/bricks/brick_transfer.hpp"
#include "asterism/grid/bricks/galerkin_stencil.hpp"
#include "asterism/grid/bricks/stencil_operator.hpp"
#include "bindings.hpp"

namespace asterism::python {
namespace {

using grid::BrickDomain;
using grid::StencilForm;
using grid::StencilKernel;
using grid::StencilOperator;
using Numbers = nb::ndarray<std::int64_t const, nb::ndim<1>, nb::device::cpu, nb::c_contig>;

/// Address, table, what keeps them, the grids, the constants, flops, the constants that are scales, and what compiles it for a GPU.
using KernelRow = std::tuple<std::uintptr_t, std::uintptr_t, nb::object, std::vector<int>, std::vector<std::complex<double>>, double,
                             std::vector<int>, nb::object>;

std::shared_ptr<grid::GpuStencil> gpu_stencil_of(nb::object const& compile) {
  return std::make_shared<grid::GpuStencil>([held = keep(compile)](std::string const& runtime, std::string const& architecture) {
    GilAcquire const gil;
    nb::object const made = nb::borrow(nb::handle(static_cast<PyObject*>(held.get())))(runtime, architecture);
    auto const [path, name, threads, planes] = nb::cast<std::tuple<std::string, std::string, int, std::int64_t>>(made);
    return grid::CompiledStencil{path, name, threads, planes};
  });
}

StencilKernel kernel_of(KernelRow const& row) {
  auto const& [function, program, owner, grids, constants, flops, scales, for_gpu] = row;
  return {reinterpret_cast<void (*)(stencil::Arguments const*)>(function),
          reinterpret_cast<void const*>(program),
          keep(owner),
          grids,
          constants,
          flops,
          scales,
          gpu_stencil_of(for_gpu)};
}

constexpr std::array form_names{"product", "transposed", "residual", "smooth", "step", "coloured", "start", "coloured_start"};

char const* name_of_form(StencilForm form) { return form_names[std::size_t(form)]; }

StencilForm form_of(std::string const& name) {
  auto const found = std::find(form_names.begin(), form_names.end(), name);
  ASTERISM_REQUIRE(found != form_names.end(), internal, "a stencil has no form '{}'", name);
  return StencilForm(found - form_names.begin());
}

grid::Centring centring_of(std::string const& name) {
  return name == "nodes" ? grid::Centring::nodes : name == "cells" ? grid::Centring::cells : grid::Centring::blocks;
}

char const* name_of_rule(la::CoarseRule::By by) {
  return by == la::CoarseRule::By::again ? "again" : by == la::CoarseRule::By::galerkin ? "galerkin" : "either";
}

/// The items of both arrays, from points to bricks or back; sizes are checked.
void permute(BrickDomain const& d, ReadArray const& from, AnyArray const& to, bool into_bricks) {
  auto const points = std::size_t(d.owned().points()), padded = std::size_t(d.space().local_size());
  auto const bytes = from.itemsize(), n = into_bricks ? points : padded, m = into_bricks ? padded : points;
  auto const k = n == 0 ? std::size_t(1) : from.size() / n;
  ASTERISM_REQUIRE(from.size() == n * k && to.size() == m * k && to.itemsize() == bytes, shape,
                   "{} values of {} bytes into {} of {} where a rank has {} points and {} in bricks.", from.size(), bytes, to.size(),
                   to.itemsize(), points, padded);
  GilRelease const gil;
  into_bricks ? d.to_bricks(from.data(), to.data(), bytes * k) : d.from_bricks(from.data(), to.data(), bytes * k);
}

/// From values of a small grid: places in it of the rank's points, along each axis.
void set_diagonal_by_places(StencilOperator& A, ReadArray const& values, std::vector<Numbers> const& places, std::optional<double> bound) {
  auto const& domain = A.bricks();
  ASTERISM_REQUIRE(
      values.ndim() == places.size() && places.size() == std::size_t(domain.dimensions()) && dtype_of_array(values) == A.dtype(), internal,
      "{} axes of places for a diagonal of {} axes", places.size(), values.ndim());
  grid::Triple sizes{1, 1, 1};
  std::array<std::vector<std::int64_t>, 3> all;
  auto const box = domain.owned().sizes();
  for (std::size_t a = 0, missing = 3 - places.size(); a < 3; ++a) {
    if (a < missing) {
      all[a].assign(std::size_t(box[a]), 0);
    } else {
      auto const& of_axis = places[a - missing];
      all[a].assign(of_axis.data(), of_axis.data() + of_axis.size());
      sizes[a] = std::int64_t(values.shape(a - missing));
    }
  }
  GilRelease const gil;
  la::Vector d(A.range(), A.dtype());
  domain.spread(values.data(), sizes, all, d.data().raw(), values.itemsize());
  A.set_diagonal(std::move(d), bound);
}

}  // namespace

void bind_bricks(nb::module_& m) {
  nb::class_<BrickDomain>(m, "BrickDomain")
      .def(
          "__init__",
          [](BrickDomain* self, comm::Communicator const& c, std::vector<std::int64_t> const& shape, std::vector<std::int64_t> const& brick,
             std::vector<bool> const& periodic, std::vector<std::int64_t> const& ranks, std::optional<std::string> const& transport) {
            auto const t = transport_of(transport);
            GilRelease const gil;
            new (self) BrickDomain(c, shape, brick, periodic, ranks, t);
          },
          nb::arg("comm"), nb::arg("shape"), nb::arg("brick"), nb::arg("periodic"), nb::arg("ranks"), nb::arg("transport").none())
      .def_prop_ro("shape", &BrickDomain::shape)
      .def_prop_ro("brick", &BrickDomain::brick)
      .def_prop_ro("ranks", [](BrickDomain const& d) { return d.partition().boxes(); })
      .def("owned", [](BrickDomain const& d, int rank) { return std::pair(d.owned(rank).low, d.owned(rank).high); })
      .def_prop_ro("layout", [](BrickDomain const& d) -> comm::Layout { return d.space(); })
      .def_prop_ro("bricks", &BrickDomain::bricks)
      .def_prop_ro("inner_bricks", &BrickDomain::inner_bricks)
      .def_prop_ro("ghost_bricks", &BrickDomain::ghost_bricks)
      .def("is_past_caches", [](BrickDomain const& d, std::string const& dtype) { return grid::is_past_caches(d, dtype_from_name(dtype)); })
      .def_prop_ro("ghosts", [](BrickDomain const& d) { return d.space().ghost_forest().forest(); })
      .def("to_bricks", [](BrickDomain const& d, ReadArray const& from, AnyArray const& to) { permute(d, from, to, true); })
      .def("from_bricks", [](BrickDomain const& d, ReadArray const& from, AnyArray const& to) { permute(d, from, to, false); });
  nb::class_<grid::BrickTransfer, la::Operator>(m, "BrickTransfer")
      .def("__init__",
           [](grid::BrickTransfer* self, BrickDomain const& fine, BrickDomain const& coarse, std::string const& centring,
              std::string const& dtype, grid::Ends const& ends) {
             GilRelease const gil;
             new (self) grid::BrickTransfer(fine, coarse, centring_of(centring), dtype_from_name(dtype), ends);
           })
      .def_static("coarsened",
                  [](BrickDomain const& fine, std::string const& centring, bool any_size, std::vector<int> const& least,
                     std::int64_t points_per_rank) {
                    GilRelease const gil;
                    return grid::BrickTransfer::coarsened(fine, centring_of(centring), {any_size, least, points_per_rank});
                  })
      .def_static("coarse_ends", [](BrickDomain const& fine, std::string const& centring,
                                    grid::Ends const& ends) { return grid::BrickTransfer::coarse_ends(fine, centring_of(centring), ends); })
      .def_static("usual_ends", [](std::string const& centring) { return grid::usual_ends(centring_of(centring)); });
  nb::class_<grid::BrickRestriction, la::Operator>(m, "BrickRestriction").def(nb::init<std::shared_ptr<grid::BrickTransfer const>>());
  // offset along the coarse axes and coefficients in bricks
  m.def("galerkin_coefficients",
        [](la::Operator const& A, la::Operator const& P, la::Operator const& R, BrickDomain const& coarse, grid::Triple const& reach) {
          auto const found = [&] {
            GilRelease const gil;
            return grid::galerkin_coefficients(A, P, R, coarse, reach);
          }();
          nb::list out;
          for (auto const& [offset, v] : found) out.append(nb::make_tuple(offset, array_of(v, true)));
          return out;
        });
  nb::class_<la::StepSequence>(m, "StepSequence")
      .def(
          "run",
          [](la::StepSequence const& steps, la::Operator const& A, ReadArray const& b, AnyArray const& x, AnyArray const& other, bool fresh,
             std::optional<AnyArray> const& r) {
            auto const bv = as_vector(A.range(), b, "b");
            auto xv = as_vector(A.range(), x, "x"), ov = as_vector(A.range(), other, "other");
            auto rv = r ? as_vector(A.range(), *r, "r") : la::Vector();
            GilRelease const gil;
            la::Vector *now = &xv, *next = &ov;
            la::Array of_b;
            steps.run(bv, now, next, fresh, r ? &rv : nullptr, of_b);
            return now != &xv;
          },
          nb::arg("A"), nb::arg("b"), nb::arg("x"), nb::arg("other"), nb::arg("fresh"), nb::arg("r").none());
  nb::class_<StencilOperator, la::Operator>(m, "StencilOperator")
      .def(
          "__init__",
          [](StencilOperator* self, BrickDomain const& d, std::string const& dtype, KernelRow const& product,
             std::vector<ReadArray> const& coefficients, std::string const& name) {
            std::vector<la::Vector> c;
            for (auto const& a : coefficients) c.push_back(as_vector(d.space(), a, "coefficients of a stencil"));
            auto kernel = kernel_of(product);
            GilRelease const gil;
            new (self) StencilOperator(d, dtype_from_name(dtype), std::move(kernel), c, name);
          },
          nb::arg("domain"), nb::arg("dtype"), nb::arg("product"), nb::arg("coefficients"), nb::arg("name"))
      .def("add", [](StencilOperator& A, std::string const& form, KernelRow const& kernel) { A.add(form_of(form), kernel_of(kernel)); })
      .def("has", [](StencilOperator const& A, std::string const& form) { return A.has(form_of(form)); })
      .def(
          "set_diagonal",
          [](StencilOperator& A, ReadArray const& d, ReadArray const& row_sums) {
            la::Vector own(A.range(), A.dtype());
            auto const given = as_vector(A.range(), d, "diagonal of a stencil");
            auto const sums = as_vector(A.range(), row_sums, "sums of a stencil's rows");
            GilRelease const gil;
            copy(given, own);
            A.set_diagonal(std::move(own), sums);
          },
          nb::arg("diagonal"), nb::arg("row_sums"))
      .def("set_diagonal_by_places", &set_diagonal_by_places, nb::arg("values"), nb::arg("places"), nb::arg("bound").none())
      .def("zero_beyond", &StencilOperator::zero_beyond, nb::call_guard<GilRelease>())
      .def("set_colouring",
           [](StencilOperator& A, bool star) { A.set_colouring(star ? grid::Colouring::red_black : grid::Colouring::boxes); })
      .def("set_converted",
           [](StencilOperator& A, nb::object const& make) {
             A.set_converted([held = keep(make)](Dtype dtype) {
               GilAcquire const gil;
               nb::object const made = nb::borrow(nb::handle(static_cast<PyObject*>(held.get())))(std::string(name_of(dtype)));
               return std::shared_ptr<la::Operator const>(nb::cast<std::shared_ptr<la::Operator>>(made));
             });
           })
      .def("set_coarse",
           [](StencilOperator& A, nb::object const& make) {
             A.set_coarse([held = keep(make), of = &A](la::CoarseRule const& rule) -> std::optional<la::Operator::Coarse> {
               GilAcquire const gil;
               nb::object const made = nb::borrow(nb::handle(static_cast<PyObject*>(held.get())))(
                   nb::cast(of, nb::rv_policy::reference), name_of_rule(rule.by), rule.rows_per_rank, rule.paired);
               if (made.is_none()) return std::nullopt;
               using Operator = std::shared_ptr<la::Operator>;
               auto const [coarse, P, R, paired] = nb::cast<std::tuple<Operator, Operator, Operator, bool>>(made);
               return la::Operator::Coarse{coarse, P, R, {}, paired};
             });
           })
      .def("set_maker",
           [](StencilOperator& A, nb::object const& make, std::vector<int> const& reach, bool transposes) {
             A.set_maker(
                 [held = keep(make)](std::vector<StencilForm> const& forms) {
                   GilAcquire const gil;
                   nb::list names;
                   for (auto const form : forms) names.append(name_of_form(form));
                   auto const rows = nb::cast<std::vector<KernelRow>>(nb::borrow(nb::handle(static_cast<PyObject*>(held.get())))(names));
                   std::vector<StencilKernel> kernels;
                   for (auto const& row : rows) kernels.push_back(kernel_of(row));
                   return kernels;
                 },
                 reach, transposes);
           })
      .def(
          "to_matrix", [](StencilOperator const& A) { return A.matrix_in(grid::EntryOrder::lexicographic); }, nb::call_guard<GilRelease>())
      .def_prop_ro("bound", &StencilOperator::eigenvalue_bound)
      .def("diagonal",
           [](StencilOperator const& A, AnyArray const& d) {
             auto out = as_vector(A.range(), d, "diagonal of a stencil");
             copy(A.diagonal(), out);
           })
      .def(
          "apply_transpose",
          [](StencilOperator const& A, ReadArray const& x, AnyArray const& y, bool conjugate) {
            auto const xv = as_vector(A.range(), x, "A.T @ x");
            auto yv = as_vector(A.range(), y, "A.T @ x");
            GilRelease const gil;
            A.apply_transpose(xv, yv, conjugate);
          },
          nb::arg("x"), nb::arg("y"), nb::arg("conjugate") = false)
      .def("steps", [](StencilOperator const& A, std::vector<std::pair<ReadArray, double>> const& weights, std::int64_t at_once) {
        std::vector<la::Step> steps;
        for (auto const& [w, scale] : weights) steps.push_back({as_vector(A.range(), w, "weights"), scale});
        GilRelease const gil;
        return A.steps(steps, at_once);
      });
}

}  // namespace asterism::python
