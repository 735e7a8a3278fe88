#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <csignal>

#include "asterism/comm/transport/choice.hpp"
#include "asterism/device/queue.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::python {

namespace nb = nanobind;

/// Python before 3.14 ends a daemon thread that wants the lock while the program ends, by an exception that C++ must not stop, and has no
/// lock after that. Such a thread waits here for ever instead, as in later Pythons.
template <class F>
auto to_the_end_of_the_program(F const& take) noexcept {
  while (!Py_IsInitialized() && gettid() != getpid()) pause();
  try {
    return take();
  } catch (...) {
    for (;;) pause();
  }
}

/// Work without Python's lock.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    to_the_end_of_the_program([&] { PyEval_RestoreThread(state_); });
  }
  GilRelease(GilRelease const&) = delete;
  GilRelease& operator=(GilRelease const&) = delete;

 private:
  PyThreadState* state_;
};

/// Work with it, of any thread.
class GilAcquire {
 public:
  GilAcquire() : state_(to_the_end_of_the_program([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() {
    while (!PyGILState_Check()) pause();  // a function of Python's was ended here
    PyGILState_Release(state_);
  }
  GilAcquire(GilAcquire const&) = delete;
  GilAcquire& operator=(GilAcquire const&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Calls Python within work of the core. Ctrl-C that Python sees there is raised again, for the next question of that work; where SIGINT
/// is ignored nothing would come of that, and the exception goes on.
template <class F>
void call_within(F const& f) {
  GilAcquire const gil;
  try {
    f();
  } catch (nb::python_error const& e) {
    if (!e.matches(PyExc_KeyboardInterrupt) || PyOS_getsig(SIGINT) == SIG_IGN) throw;
    PyErr_SetInterrupt();
  }
}

using AnyArray = nb::ndarray<nb::device::cpu, nb::c_contig>;
using ReadArray = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;  // of which nothing is written

/// The named transport, or the process's default.
comm::TransportChoice transport_of(std::optional<std::string> const& name);

void bind_comm(nb::module_& m);
void bind_la(nb::module_& m);
void bind_assembly(nb::module_& m);
void bind_products(nb::module_& m);
void bind_ordering(nb::module_& m);
void bind_factors(nb::module_& m);
void bind_triangular(nb::module_& m);
void bind_submatrix(nb::module_& m);
void bind_star_forest(nb::module_& m);
void bind_queued_forest(nb::module_& m);
void bind_channels(nb::module_& m);
void bind_grid(nb::module_& m);
void bind_stencil(nb::module_& m);
void bind_bricks(nb::module_& m);
void bind_solve(nb::module_& m);
void bind_queues(nb::module_& m);
void bind_vectors(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_files(nb::module_& m);

Dtype dtype_of_array(ReadArray const& a);
nb::object new_array(Dtype d, std::vector<std::size_t> const& shape);
/// The array's memory as a vector of the layout: (n) or (n, k). Shapes are checked.
la::Vector as_vector(la::Space const& space, AnyArray const& a, char const* what);
la::Vector const as_vector(la::Space const& space, ReadArray const& a, char const* what);

/// The vector's memory on the host as a NumPy array that keeps it: (n), or (n, k).
nb::object array_of(la::Vector const& v, bool flat);

/// Where my nodes are, (nodes, d), as an array of its own; None if that is not known.
nb::object coordinates_array(la::Space const& space);

/// Keeps a Python object alive from threads that do not hold the lock.
std::shared_ptr<void> keep(nb::object const& o);

/// A vector for a function: its array is flat (n) or (n, k), read-only if only read.
struct FunctionArgument {
  la::Vector vector;
  device::Access access;
  bool flat;
};
/// f(arrays...) as a task of the queue; it runs with Python's lock, which the caller holds too.
void submit_function(device::Queue const& queue, nb::object const& f, std::vector<FunctionArgument> const& arguments);

}  // namespace asterism::python
