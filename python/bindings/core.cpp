// The extension module: thin, no logic. Arrays are passed as views; the GIL is dropped while we work.

#include <cstring>
#include <stdexcept>

#include "bindings.hpp"

#include "asterism/base/interrupt.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/machine.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/device/stream.hpp"

namespace asterism::python {

namespace {

// Python's own exception classes live in asterism/errors.py; the module hands them over once.
nb::object& error_class() {
  static auto* maker = new nb::object();  // never destroyed: the interpreter may be gone by then
  return *maker;
}

/// The text of an error for people: bytes of a user's file that are not UTF-8 as \xNN.
nb::object as_text(char const* what) { return nb::steal(PyUnicode_DecodeUTF8(what, Py_ssize_t(std::strlen(what)), "backslashreplace")); }

/// An error of the package's own class.
void set_error(ErrorKind kind, nb::object const& text, bool shared = false) {
  nb::object const cls = error_class()(std::string(name_of(kind)));
  nb::object const value = cls(text);
  value.attr("shared") = shared;
  PyErr_SetObject(cls.ptr(), value.ptr());
}

void set_memory_error(char const* text) {
  if (error_class().is_valid()) set_error(ErrorKind::memory, as_text(text));
  else PyErr_NoMemory();
}

}  // namespace

NB_MODULE(_core, m) {
  static bool loaded = false;  // what was taken out of sys.modules; its types are registered once in a process
  if (loaded) throw nb::import_error("asterism was removed from sys.modules; it cannot be imported twice in a process. Start Python anew.");
  loaded = true;
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](std::exception_ptr const& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (Error const& e) {
      if (e.kind() == ErrorKind::interrupted) {
        nb::object value = nb::borrow(PyExc_KeyboardInterrupt)(as_text(e.what()));
        value.attr("shared") = e.shared();
        PyErr_SetObject(PyExc_KeyboardInterrupt, value.ptr());
        return;
      }
      if (!error_class().is_valid()) {  // an error while the package is loaded
        PyErr_SetString(PyExc_RuntimeError, e.what());
        return;
      }
      set_error(e.kind(), as_text(e.what()), e.shared());
    } catch (std::bad_alloc const&) {
      set_memory_error("out of memory.");
    } catch (std::length_error const&) {
      set_memory_error("out of memory: an array of more entries than an address can tell.");
    }
  });
  m.def("set_error_classes", [](nb::object by_name) { error_class() = std::move(by_name); });
  // work that takes long: what, the fraction that is done or a negative number, seconds, whether it has ended
  m.def("set_progress_sink", [](nb::object sink) {
    auto* held = new nb::object(std::move(sink));
    set_progress_sink([held](ProgressReport const& r) {
      GilAcquire gil;
      try {
        (*held)(r.what, r.fraction, r.seconds, r.ended);
      } catch (nb::python_error& e) {
        // Of showing it only Ctrl-C is of interest. The signal is raised again: for the next question of the work under way, or for Python
        // if the work ends before it asks.
        if (e.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
      }
    });
  });
  m.def("set_log_sink", [](nb::object sink) {
    auto* held = new nb::object(std::move(sink));
    log::set_sink([held](log::Level level, std::string const& text) {
      GilAcquire gil;
      try {
        (*held)(int(level), as_text(text.c_str()));
      } catch (nb::python_error& e) {
        // A user's handler has failed. The other ranks go on, and so does this one: also a destructor writes here.
        if (e.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
        else e.discard_as_unraisable("a message to the logger asterism");
      }
    });
  });
  set_interrupt_poll([] {
    GilAcquire gil;
    if (PyErr_CheckSignals() == 0) return false;
    PyErr_Clear();  // the solve ends with DIVERGED_INTERRUPTED, which Python turns into KeyboardInterrupt
    return true;
  });
  m.def("set_time_limit", &set_time_limit);
  m.def("version", [] { return std::string(version()); });
  m.def("build_info", [] { return build_info(); });
  m.def("check_cpu", &check_cpu);
  m.def("stream_triad", &device::stream_triad, nb::arg("n"), nb::arg("repeats"), nb::arg("past_caches") = false,
        nb::call_guard<GilRelease>());
  m.def("team_size", &device::host::team_size);
  m.def("set_team_size", &device::host::set_team_size);
  m.def("allowed_cores", &device::host::allowed_cores);

  m.def("set_reproducible", &set_reproducible);
  m.def("start_trace", &profile::start_trace);
  m.def("trace_json", &profile::trace_json);
  m.def("profile_enable", &profile::enable);
  m.def("profile_reset", &profile::reset);
  m.def("profile_snapshot", [] {
    nb::list out;
    for (auto const& s : profile::snapshot()) {
      nb::dict d;
      d["name"] = s.name;
      d["calls"] = s.calls;
      d["seconds"] = s.seconds;
      d["self_seconds"] = s.self_seconds;
      d["flops"] = s.flops;
      d["bytes"] = s.bytes;
      d["messages"] = s.messages;
      d["message_bytes"] = s.message_bytes;
      d["reductions"] = s.reductions;
      out.append(d);
    }
    return out;
  });

  bind_comm(m);
  bind_operators(m);
  bind_bricks(m);
  bind_grid(m);
  bind_stencil(m);
  bind_la(m);
  bind_files(m);
  bind_ordering(m);
  bind_factors(m);
  bind_triangular(m);
  bind_solve(m);
  bind_queues(m);
  bind_vectors(m);
  bind_queued_forest(m);
}

}  // namespace asterism::python
