#include <nanobind/stl/shared_ptr.h>

#include "bindings.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "asterism/solve/least_squares.hpp"
#include "asterism/solve/options.hpp"
#include "asterism/solve/scaling.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::python {

using solve::SolveInfo;
using solve::Solver;

namespace {

/// Offsets, columns and values.
nb::object rows_of(la::Csr const& a) {
  nb::object np = nb::module_::import_("numpy");
  auto const n = std::size_t(a.nnz());
  nb::object ptr = np.attr("empty")(std::size_t(a.rows) + 1, "int64"), col = np.attr("empty")(n, "int32");
  auto val = new_array(a.dtype, {n});
  std::ranges::copy(a.row_offsets(), nb::cast<nb::ndarray<std::int64_t>>(ptr).data());
  std::ranges::copy(a.column_indices(), nb::cast<nb::ndarray<std::int32_t>>(col).data());
  if (n > 0) std::memcpy(nb::cast<AnyArray>(val).data(), a.values.raw(), n * size_of(a.dtype));
  return nb::make_tuple(ptr, col, val);
}

template <class T>
nb::object numbers(std::vector<T> const& v, char const* dtype) {
  nb::object out = nb::module_::import_("numpy").attr("empty")(v.size(), dtype);
  std::copy(v.begin(), v.end(), nb::cast<nb::ndarray<T>>(out).data());
  return out;
}

/// A matrix and what is seen of it, as a Solver does: scaled where its numbers are near the ends of their range.
std::pair<la::Matrix, solve::Inspection> seen(la::Matrix const& A) {
  double const largest = A.largest_entry();
  int const exponent = solve::scaling_exponent(largest, A.dtype());
  auto scaled = exponent == 0 ? A : A.scaled(exponent, false);
  auto found = solve::inspect(scaled, exponent == 0 ? nullptr : &A, largest);
  found.size = largest;
  return {std::move(scaled), std::move(found)};
}

}  // namespace

void bind_solve(nb::module_& m) {
  m.def(
      "automatic_choice",
      [](la::Matrix const& A) {
        auto const choice = solve::automatic_choice(seen(A).second, A.global_rows());
        std::vector<std::string> attempts;
        for (auto const& a : choice.attempts) attempts.push_back(a.text());
        return std::pair(choice.method, attempts);
      },
      nb::call_guard<GilRelease>());
  m.def("look", [](la::Matrix const& A) {
    solve::Inspection found;
    solve::NullSpace null_space;
    {
      GilRelease const gil;
      la::Matrix scaled;
      std::tie(scaled, found) = seen(A);
      if (found.hermitian) null_space = solve::detected_null_space(scaled);
    }
    nb::dict d;
    d["Hermitian"] = found.hermitian;
    d["asymmetry"] = found.asymmetry;
    d["positive_diagonal"] = found.positive_diagonal;
    d["negative_diagonal"] = found.negative_diagonal;
    d["zeros_on_the_diagonal"] = found.zero_diagonals;
    d["null_vectors"] = null_space.dimension();
    d["null_components"] = null_space.empty() ? 0 : null_space.components();
    d["largest_entry"] = found.size;
    return d;
  });
  nb::enum_<OptionLayer>(m, "OptionLayer")
      .value("file", OptionLayer::file)
      .value("environment", OptionLayer::environment)
      .value("command_line", OptionLayer::command_line)
      .value("dict", OptionLayer::dict)
      .value("call", OptionLayer::call);
  nb::class_<Options>(m, "Options")
      .def(nb::init<>())
      .def("set", &Options::set)
      .def("parse", &Options::parse)
      .def("parse_file", &Options::parse_file)
      .def("names", &Options::names)
      .def("set_read_elsewhere", &Options::set_read_elsewhere)
      .def("set_prefixes", &Options::set_prefixes)
      .def("get", [](Options const& o, std::string const& name) -> std::optional<std::string> {
        auto const* v = o.find(name);
        if (!v) return std::nullopt;
        return v->value;
      });
  m.def("apply_process_options", &solve::apply_process_options);
  m.def("process_settings", &solve::process_settings);
  m.def("process_defaults", [] {
    std::map<std::string, std::string> out;
    for (auto const& spec : solve::process_table()) out[spec.name] = spec.fallback;
    return out;
  });
  m.def("nearest", [](std::string const& name, std::vector<std::string> const& candidates) { return nearest(name, candidates); });
  m.def("option_tables", [] {
    nb::list out;
    for (auto const& [name, table] : solve::option_tables())
      for (auto const& s : *table) out.append(nb::make_tuple(name, s.name, s.fallback, s.help, s.choices));
    return out;
  });
  m.def("component_names", [] {
    nb::dict methods, preconditioners;
    for (auto const& [name, e] : krylov::methods()) methods[name.c_str()] = e.about;
    for (auto const& [name, e] : precond::preconditioners()) preconditioners[name.c_str()] = e.about;
    return nb::make_tuple(methods, preconditioners);
  });

  m.def(
      "least_squares",
      [](std::string const& method, std::shared_ptr<la::Operator> const& A, ReadArray const& b, AnyArray const& x,
         std::array<double, 4> const& rule, std::int64_t max_it, nb::object const& watch) {
        auto const bv = as_vector(A->range(), b, "least squares: b");
        auto xv = as_vector(A->domain(), x, "least squares: x");
        std::function<void(std::int64_t, double, double)> f;
        if (!watch.is_none()) f = [&watch](std::int64_t it, double r, double n) { call_within([&] { watch(it, r, n); }); };
        krylov::LeastSquaresInfo i;
        {
          GilRelease const gil;
          i = solve::least_squares(method == "lsqr", A, bv, xv, {rule[0], rule[1], rule[2], rule[3], max_it}, f);
        }
        return nb::make_tuple(i.stop, i.iterations, i.residual_norm, i.normal_norm, i.norm_A, i.cond_A, i.norm_x);
      },
      nb::arg("method"), nb::arg("A"), nb::arg("b"), nb::arg("x"), nb::arg("rule"), nb::arg("max_it"), nb::arg("watch").none());

  nb::class_<SolveInfo>(m, "SolveInfo")
      .def_ro("converged", &SolveInfo::converged)
      .def_ro("reason", &SolveInfo::reason)
      .def_ro("why", &SolveInfo::why)
      .def_ro("iterations", &SolveInfo::iterations)
      .def_ro("residual_norms", &SolveInfo::residual_norms)
      .def_ro("true_residual", &SolveInfo::true_residual)
      .def_ro("rhs_norm", &SolveInfo::rhs_norm)
      .def_ro("backward_error", &SolveInfo::backward_error)
      .def_ro("resumes", &SolveInfo::resumes)
      .def_ro("setup_seconds", &SolveInfo::setup_seconds)
      .def_ro("solve_seconds", &SolveInfo::solve_seconds)
      .def_ro("memory_bytes", &SolveInfo::memory_bytes)
      .def_ro("host_waits", &SolveInfo::host_waits)
      .def_ro("method", &SolveInfo::method)
      .def_ro("preconditioner", &SolveInfo::preconditioner)
      .def_ro("notes", &SolveInfo::notes);

  nb::class_<Solver>(m, "Solver")
      .def(nb::init<la::Matrix, Options, std::string>(), nb::call_guard<GilRelease>())
      .def(
          "__init__",
          [](Solver* self, std::shared_ptr<la::Operator> const& A, std::optional<la::Matrix> const& P,
             std::shared_ptr<la::Operator> const& M, Options const& options, std::string const& prefix,
             std::optional<ReadArray> const& null_space) {
            la::Vector projected;
            if (null_space) {
              auto const view = as_vector(A->domain(), *null_space, "null_space");
              projected = la::Vector(A->domain(), A->dtype(), view.columns());
              copy(view, projected);
            }
            GilRelease const gil;
            new (self) Solver(A, P.value_or(la::Matrix()), M, options, prefix, projected);
          },
          nb::arg("A"), nb::arg("P").none(), nb::arg("M").none(), nb::arg("options"), nb::arg("prefix"),
          nb::arg("null_space").none() = nb::none())
      .def(
          "solve",
          [](Solver& s, ReadArray const& b, AnyArray const& x, nb::object const& watcher, bool needs_iterate, std::string const& transpose,
             bool zero_guess, std::optional<double> rtol, std::optional<double> atol, std::optional<std::int64_t> max_it) {
            auto const bv = as_vector(s.op().range(), b, "solve: b");
            auto xv = as_vector(s.op().range(), x, "solve: x");
            krylov::Watcher watch;
            if (!watcher.is_none())
              watch = [&watcher](std::int64_t it, std::vector<double> const& norms) { call_within([&] { watcher(it, norms); }); };
            GilRelease const gil;
            solve::OwnRule const own{rtol, atol, max_it};
            if (transpose != "N") return s.solve_transpose(bv, xv, transpose == "H", watch, needs_iterate, own);
            return s.solve(bv, xv, watch, needs_iterate, zero_guess, own);
          },
          nb::arg("b"), nb::arg("x"), nb::arg("watcher").none() = nb::none(), nb::arg("needs_iterate") = false, nb::arg("transpose") = "N",
          nb::arg("zero_guess") = false, nb::arg("rtol").none() = nb::none(), nb::arg("atol").none() = nb::none(),
          nb::arg("max_it").none() = nb::none())
      .def("update", &Solver::update, nb::call_guard<GilRelease>())
      .def_prop_ro("reused", &Solver::reused)
      .def("preconditioner_operator", [](Solver const& s) { return std::const_pointer_cast<la::Operator>(s.approximate_inverse()); })
      .def("levels", [](Solver const& s) { return s.preconditioner()->levels(); })
      .def("explain",
           [](Solver const& s) {
             nb::list out;
             for (auto const& e : s.explain()) out.append(nb::make_tuple(e.name, e.value, e.origin, e.help));
             return out;
           })
      .def("view", &Solver::view)
      .def("factor_facts",
           [](Solver const& s) -> nb::object {
             std::optional<precond::FactorFacts> f;
             {
               GilRelease const gil;
               f = s.factor_facts();
             }
             if (!f) return nb::none();
             nb::dict d;
             d["kind"] = f->kind;
             d["dense"] = f->dense;
             d["solver_type"] = f->by.empty() ? "asterism" : f->by;
             d["ordering"] = f->ordering;
             d["matched"] = f->matched;
             d["entries"] = f->entries;
             d["memory_bytes"] = f->bytes;
             d["delayed"] = f->delayed;
             d["replaced"] = f->replaced;
             d["zero"] = f->zero;
             d["two_by_two"] = f->two_by_two;
             d["negative"] = f->negative;
             d["growth"] = f->growth;
             d["condition"] = f->condition;
             d["sign"] = std::complex<double>(f->determinant[0], f->determinant[1]);
             d["logabsdet"] = f->determinant[2];
             return d;
           })
      .def("explicit_factors",
           [](Solver const& s) {
             direct::ExplicitFactors f;
             {
               GilRelease const gil;
               f = s.explicit_factors();
             }
             return nb::make_tuple(rows_of(f.L), rows_of(f.U), numbers(f.rows, "int32"), numbers(f.columns, "int32"),
                                   numbers(f.row_scale, "float64"), numbers(f.column_scale, "float64"));
           })
      .def("notes", [](Solver const& s) { return s.notes(); })
      .def_prop_ro("method", [](Solver const& s) { return s.method_name(); })
      .def_prop_ro("preconditioner", [](Solver const& s) { return s.preconditioner_name(); })
      .def_prop_ro("setup_seconds", [](Solver const& s) { return s.setup_seconds(); });
}

}  // namespace asterism::python
