// Vectors and scalars on queues, for methods written in Python.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/tuple.h>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/gpu/launch_batch.hpp"
#include "asterism/device/gpu/vendor_library.hpp"
#include "asterism/device/ledger.hpp"
#include "asterism/grid/bricks/gpu_stencil.hpp"
#include "asterism/la/formats/csr/cusparse.hpp"
#include "bindings.hpp"
#include "queue_vector.hpp"

namespace asterism::python {
namespace {

using comm::Layout;
using device::Access;
using device::Array;
using device::Scalar;
using la::Vector;

Queue new_queue(std::string const& kind, std::uint64_t seed) { return device::Queue::from_name(kind, seed); }

void check_threads(Layout const& layout, device::Queue const& queue) {
  if (layout.comm().size() > 1 && (queue.kind() == "thread" || queue.kind() == "strict" || queue.memory() == device::Memory::gpu))
    comm::require_thread_multiple("a vector of several ranks on a thread, strict or GPU queue");
}

QueueVector new_vector(Layout const& layout, std::string const& dtype, std::int64_t k, Queue const& q) {
  check_threads(layout, q.value);
  return Vector(layout, dtype_from_name(dtype), k, q.value);
}

/// Of an operator's rows, with what its space knows: room for ghosts, padding.
QueueVector new_of_operator(la::Operator const& A, std::string const& dtype, std::int64_t k, Queue const& q) {
  check_threads(A.range(), q.value);
  return Vector(A.range(), dtype_from_name(dtype), k, q.value);
}

QueueVector new_unified(Layout const& layout, std::string const& dtype, std::int64_t k, Queue const& q) {
  ASTERISM_REQUIRE(q.value.memory() == device::Memory::gpu, unsupported,
                   "Vector: unified=True on queue '{}'. Unified memory is the host's and a GPU's: give a queue on that.", q.value.kind());
  check_threads(layout, q.value);
  auto const d = dtype_from_name(dtype);
  return Vector::wrap(layout, d, k, Array::unified(std::size_t(layout.local_size() * k) * size_of(d)), q.value);
}

QueueVector wrapped(la::Space const& space, nb::object const& array, Queue const& q) {
  check_threads(space, q.value);
  auto const a = nb::cast<AnyArray>(array);
  auto const view = as_vector(space, a, "Vector.wrap");
  auto const bytes = std::size_t(view.local_size() * view.columns()) * size_of(view.dtype());
  return Vector::wrap(space, view.dtype(), view.columns(), Array::wrap(a.data(), bytes, keep(array)), q.value);
}

nb::object settled(QueueVector const& v, bool flat) {
  {
    GilRelease const gil;
    v.value.data().settle(Access::update, "numpy()");
  }
  return array_of(v.value, flat);
}

void submit_users_function(Queue const& q, nb::object const& f, std::vector<std::tuple<QueueVector, std::string, bool>> const& vectors) {
  std::vector<FunctionArgument> arguments;
  for (auto const& [v, how, flat] : vectors)
    arguments.push_back({v.value, how == "read" ? Access::read : how == "write" ? Access::write : Access::update, flat});
  submit_function(q.value, f, arguments);
}

// --- a GPU's memory, exchanged with other libraries

/// The vector's memory on its queue's GPU, with the newest values once its stream has come there. What is written to it is seen by what is
/// submitted afterwards.
std::uintptr_t gpu_pointer(QueueVector const& v, bool reads_only) {
  auto const& queue = v.value.queue();
  ASTERISM_REQUIRE(queue.memory() == device::Memory::gpu, unsupported, "the vector is on queue '{}', not on a GPU's.", queue.kind());
  std::vector<device::Intent> intents;
  v.value.data().intend(reads_only ? Access::read : Access::update, intents);
  queue.enqueue(std::move(intents), [](device::Executor&) {});
  (void)queue.stream();  // launched
  return reinterpret_cast<std::uintptr_t>(v.value.data().raw(device::Memory::gpu));
}

/// As gpu_pointer, for a consumer that orders its own work: its stream waits for ours.
nb::object gpu_capsule(QueueVector const& v, bool flat, std::optional<std::intptr_t> stream) {
  std::uintptr_t at = 0;
  {
    GilRelease const gil;
    at = gpu_pointer(v, false);
    // DLPack: none and 1 are the legacy default stream, 2 the thread's own, -1 says that no order is wanted
    if (stream.value_or(1) != -1) device::gpu::follow(reinterpret_cast<void*>(stream.value_or(1)), v.value.queue().stream());
  }
  auto* const held = new QueueVector(v);
  nb::capsule const owner(held, [](void* p) noexcept { delete static_cast<QueueVector*>(p); });
  std::size_t const shape[] = {std::size_t(v.value.local_size()), std::size_t(v.value.columns())};
  auto const d = v.value.dtype();
  nb::dlpack::dtype const type{std::uint8_t(is_complex(d) ? nb::dlpack::dtype_code::Complex : nb::dlpack::dtype_code::Float),
                               std::uint8_t(8 * size_of(d)), 1};
  nb::ndarray<> const array(reinterpret_cast<void*>(at), flat ? 1 : 2, shape, owner, nullptr, type,
                            device::gpu::name() == "hip" ? nb::device::rocm::value : nb::device::cuda::value, device::gpu::device());
  return nb::cast(array, nb::rv_policy::reference);  // of no framework: a capsule
}

/// What __cuda_array_interface__ would say of an array that came by DLPack, and what keeps it alive.
nb::tuple dlpack_interface(nb::object const& capsule) {
  auto* const array = new nb::ndarray<>(nb::cast<nb::ndarray<>>(capsule));
  nb::capsule const owner(array, [](void* p) noexcept { delete static_cast<nb::ndarray<>*>(p); });
  nb::list shape, strides;
  auto const type = array->dtype();
  int const bytes = type.bits * type.lanes / 8;
  for (std::size_t i = 0; i < array->ndim(); ++i) {
    shape.append(array->shape(i));
    strides.append(array->stride(i) * bytes);
  }
  auto const kind = nb::dlpack::dtype_code(type.code);
  char const letter = kind == nb::dlpack::dtype_code::Float ? 'f' : kind == nb::dlpack::dtype_code::Complex ? 'c' : 'i';
  nb::dict out;
  out["shape"] = nb::tuple(shape);
  out["strides"] = nb::tuple(strides);
  out["typestr"] = nb::str(format("<{}{}", std::string(1, letter), bytes).c_str());
  out["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array->data()), false);
  return nb::make_tuple(out, owner);
}

QueueVector wrapped_gpu(Layout const& layout, std::uintptr_t data, std::string const& dtype, std::int64_t rows, std::int64_t k,
                        std::optional<std::intptr_t> stream, nb::object const& owner, Queue const& q) {
  check_threads(layout, q.value);
  ASTERISM_REQUIRE(q.value.memory() == device::Memory::gpu, unsupported,
                   "Vector.wrap: an array on a GPU with queue '{}'. Give a queue on that GPU: Queue(\"cuda\"), Queue.on_stream(...).",
                   q.value.kind());
  ASTERISM_REQUIRE(rows == layout.local_size(), shape, "Vector.wrap: the array has {} rows where {} are needed on rank {}.", rows,
                   layout.local_size(), layout.comm().rank());
  auto const d = dtype_from_name(dtype);
  if (rows * k > 0) device::gpu::require_memory(reinterpret_cast<void*>(data), "Vector.wrap");
  auto const held = keep(owner);
  GilRelease const gil;
  if (stream) device::gpu::follow(q.value.stream(), reinterpret_cast<void*>(*stream));
  return Vector::wrap(layout, d, k, Array::wrap_gpu(reinterpret_cast<void*>(data), std::size_t(rows * k) * size_of(d), held), q.value);
}

/// f(stream, arrays...) launches what it likes into the stream: the arrays are there when that comes to its turn.
void submit_on_gpu(Queue const& q, nb::object const& f, std::vector<std::tuple<QueueVector, std::string>> const& vectors) {
  ASTERISM_REQUIRE(q.value.memory() == device::Memory::gpu, unsupported, "submit: device=True on queue '{}', which is not a GPU's.",
                   q.value.kind());
  std::vector<device::Intent> intents;
  std::vector<Array> arrays;
  for (auto const& [v, how] : vectors) {
    v.value.data().intend(how == "read" ? Access::read : how == "write" ? Access::write : Access::update, intents);
    arrays.push_back(v.value.data());
  }
  auto const call = keep(f);
  GilRelease const gil;
  q.value.enqueue(std::move(intents), [call, arrays = std::move(arrays)](device::Executor& executor) {
    GilAcquire const lock;
    nb::list pointers;
    for (auto const& a : arrays) pointers.append(reinterpret_cast<std::uintptr_t>(a.raw(device::Memory::gpu)));
    nb::borrow<nb::object>(nb::handle(static_cast<PyObject*>(call.get())))(reinterpret_cast<std::uintptr_t>(executor.stream()), pointers);
  });
}

nb::dict gpu_state() {
  nb::dict out;
  auto const use = device::gpu::memory_use();
  out["device"] = device::gpu::describe();
  out["bytes_now"] = use.now;
  out["bytes_most"] = use.most;
  auto const graphs = device::gpu::graph_counts();
  nb::dict of_graphs;
  of_graphs["made"] = graphs.made;
  of_graphs["replayed"] = graphs.replayed;
  of_graphs["kernels"] = graphs.kernels;
  of_graphs["changed"] = graphs.changed;
  of_graphs["alone"] = graphs.alone;
  out["graphs"] = of_graphs;
  nb::list products;
  for (auto const& m : la::measured_products()) {
    nb::dict p;
    p["shape"] = nb::make_tuple(m.rows, m.cols);
    p["entries"] = m.entries;
    p["dtype"] = std::string(name_of(m.dtype));
    p["own_seconds"] = m.own_seconds;
    p["cusparse_seconds"] = m.cusparse_seconds;
    p["taken"] = m.cusparse_taken ? "cusparse" : "own";
    products.append(p);
  }
  out["products"] = products;
  nb::dict of_stencils;
  of_stencils["loaded"] = grid::gpu_stencils().loaded;
  of_stencils["missing"] = grid::gpu_stencils().missing;
  out["stencils"] = of_stencils;
  nb::dict without;
  for (auto const& w : device::gpu::without_form()) without[w.event.c_str()] = w.count;
  out["without_form"] = without;
  nb::dict copies;
  for (auto const& c : device::copy_counts())
    copies[c.event.c_str()] = nb::make_tuple(c.to_apart, c.to_apart_bytes, c.to_host, c.to_host_bytes);
  out["copies"] = copies;
  return out;
}

/// A factor of y's entries. One that is not known yet cannot be looked at: its real part is taken.
Scalar const& factor(Scalar const& a, QueueVector const& y) {
  if (!is_complex(y.value.dtype()) && a.known())
    for (std::int64_t j = 0; j < a.width(); ++j)
      ASTERISM_REQUIRE(a.value(j).imag() == 0, dtype, "the factor {} + {} i of a vector of {}. Use a complex dtype, or real().",
                       a.value(j).real(), a.value(j).imag(), name_of(y.value.dtype()));
  return a;
}

using Pairs = std::vector<std::pair<QueueVector, QueueVector>>;
std::vector<Scalar> dots_of(Pairs const& pairs) {
  std::vector<std::pair<Vector const*, Vector const*>> p;
  for (auto const& [x, y] : pairs) p.emplace_back(&x.value, &y.value);
  return p.empty() ? std::vector<Scalar>() : la::dots(p);
}

}  // namespace

nb::object array_of(Vector const& v, bool flat) {
  auto* const held = new Array(v.data());
  nb::capsule const owner(held, [](void* p) noexcept { delete static_cast<Array*>(p); });
  std::size_t const shape[] = {std::size_t(v.local_size()), std::size_t(v.columns())};
  nb::dlpack::dtype const type = [&] {
    switch (v.dtype()) {
      case Dtype::float32: return nb::dtype<float>();
      case Dtype::float64: return nb::dtype<double>();
      case Dtype::complex64: return nb::dtype<std::complex<float>>();
      default: return nb::dtype<std::complex<double>>();
    }
  }();
  return nb::cast(nb::ndarray<nb::numpy>(v.data().raw(), flat ? 1 : 2, shape, owner, nullptr, type));
}

std::shared_ptr<void> keep(nb::object const& o) {
  return {o.inc_ref().ptr(), [](void* p) {
            if (!Py_IsInitialized()) return;
            GilAcquire const gil;
            nb::handle(static_cast<PyObject*>(p)).dec_ref();
          }};
}

void submit_function(device::Queue const& queue, nb::object const& f, std::vector<FunctionArgument> const& arguments) {
  nb::list arrays;
  std::vector<device::Intent> intents;
  for (auto const& [v, access, flat] : arguments) {
    v.data().intend(access, intents);
    auto a = array_of(v, flat);
    if (access == Access::read) a.attr("setflags")(nb::arg("write") = false);
    arrays.append(a);
  }
  auto const call = keep(nb::make_tuple(f, nb::tuple(arrays)));
  GilRelease const gil;
  queue.enqueue(
      std::move(intents),
      [call](device::Executor&) {
        GilAcquire const lock;
        nb::tuple const t = nb::borrow<nb::tuple>(nb::handle(static_cast<PyObject*>(call.get())));
        nb::object const function = t[0];
        function(*nb::borrow<nb::tuple>(t[1]));
      },
      device::Queue::Form::host);
}

void bind_vectors(nb::module_& m) {
  using Release = nb::call_guard<GilRelease>;
  nb::class_<device::Event>(m, "QueueEvent")
      .def_prop_ro("done", &device::Event::done)
      .def("wait", [](device::Event const& e) { e.wait(); }, Release());
  nb::class_<Queue>(m, "Queue")
      .def_static("make", &new_queue, Release())
      .def_static(
          "on_stream", [](std::uintptr_t s) { return Queue(device::Queue::gpu_on(reinterpret_cast<void*>(s))); }, Release())
      .def_prop_ro("stream",
                   [](Queue const& q) -> std::optional<std::uintptr_t> {
                     if (q.value.memory() != device::Memory::gpu) return std::nullopt;
                     GilRelease const gil;
                     return reinterpret_cast<std::uintptr_t>(q.value.stream());
                   })
      .def("submit_on_gpu", &submit_on_gpu)
      .def_prop_ro("kind", [](Queue const& q) { return std::string(q.value.kind()); })
      .def(
          "fork", [](Queue const& q) { return Queue(q.value.fork()); }, Release())
      .def(
          "record", [](Queue const& q) { return q.value.record(); }, Release())
      .def(
          "wait_for", [](Queue const& q, device::Event const& e) { q.value.wait_for(e); }, Release())
      .def(
          "wait", [](Queue const& q) { q.value.wait("wait()"); }, Release())
      .def("waits",
           [](Queue const& q) {
             std::map<std::string, std::int64_t> out;
             for (auto const& w : q.value.waits()) out[w.reason] = w.count;
             return out;
           })
      .def("submit", &submit_users_function);

  nb::class_<Scalar>(m, "Scalar")
      .def_static("of", [](std::vector<Scalar::Value> v) { return Scalar(std::move(v)); })
      .def_static("number", [](Scalar::Value v) { return Scalar(v); })
      .def_prop_ro("width", &Scalar::width)
      .def_prop_ro("known", &Scalar::known)
      .def("values", &Scalar::values, Release())
      .def(
          "stored", [](Scalar const& s, Queue const& q) { return s.stored(q.value); }, Release())
      .def("combined",
           [](Scalar const& a, std::string const& op, Scalar const& b) {
             if (op == "+") return a + b;
             if (op == "-") return a - b;
             if (op == "*") return a * b;
             if (op == "/") return a / b;
             if (op == "min") return min(a, b);
             if (op == "max") return max(a, b);
             if (op == "<") return less(a, b);
             if (op == "<=") return less_equal(a, b);
             ASTERISM_ASSERT(op == "==");
             return equal(a, b);
           })
      .def("mapped",
           [](Scalar const& a, std::string const& op) {
             if (op == "-") return -a;
             if (op == "sqrt") return sqrt(a);
             if (op == "abs") return abs(a);
             if (op == "conj") return conj(a);
             if (op == "real") return real_part(a);
             ASTERISM_ASSERT(op == "any");
             return any(a);
           })
      .def_static("select", [](Scalar const& mask, Scalar const& a, Scalar const& b) { return select(mask, a, b); });

  nb::class_<QueueVector>(m, "QueueVector")
      .def_static("make", &new_vector, Release())  // it asks the ledgers, under whose lock others may want Python's
      .def_static("make_of_operator", &new_of_operator, Release())
      .def(
          "like", [](QueueVector const& v) { return QueueVector(v.value.like()); }, Release())
      .def_static("make_unified", &new_unified, Release())
      .def_static("wrap", [](Layout const& layout, nb::object const& array, Queue const& q) { return wrapped(layout, array, q); })
      .def_static("wrap_of_operator",
                  [](la::Operator const& A, nb::object const& array, Queue const& q) { return wrapped(A.range(), array, q); })
      .def_static("wrap_gpu", &wrapped_gpu, nb::arg("layout"), nb::arg("data"), nb::arg("dtype"), nb::arg("rows"), nb::arg("k"),
                  nb::arg("stream").none(), nb::arg("owner"), nb::arg("queue"))
      .def("gpu_pointer", &gpu_pointer, Release())
      .def("gpu_capsule", &gpu_capsule, nb::arg("flat"), nb::arg("stream").none())
      .def_prop_ro("dtype", [](QueueVector const& v) { return std::string(name_of(v.value.dtype())); })
      .def_prop_ro("columns", [](QueueVector const& v) { return v.value.columns(); })
      .def_prop_ro("local_size", [](QueueVector const& v) { return v.value.local_size(); })
      .def_prop_ro("has_own_order", [](QueueVector const& v) { return v.value.space().has_own_order(); })
      .def("has_order_of", [](QueueVector const& v, la::Operator const& A) { return v.value.space().has_order_of(A.range()); })
      .def_prop_ro("layout", [](QueueVector const& v) { return v.value.layout(); })
      .def("array", &settled)
      .def(
          "fill", [](QueueVector& y, Scalar const& a) { la::fill(y.value, factor(a, y)); }, Release())
      .def(
          "copy_from", [](QueueVector& y, QueueVector const& x) { la::copy(x.value, y.value); }, Release())
      .def(
          "scale", [](QueueVector& y, Scalar const& a) { la::scale(factor(a, y), y.value); }, Release())
      .def(
          "axpy", [](QueueVector& y, Scalar const& a, QueueVector const& x) { la::axpy(factor(a, y), x.value, y.value); }, Release())
      .def(
          "axpby",
          [](QueueVector& y, Scalar const& a, QueueVector const& x, Scalar const& b) {
            la::axpby(factor(a, y), x.value, factor(b, y), y.value);
          },
          Release())
      .def(
          "multiply", [](QueueVector& y, QueueVector const& d, QueueVector const& x) { la::multiply(d.value, x.value, y.value); },
          Release())
      .def(
          "update_and_norm2",
          [](QueueVector& x, Scalar const& alpha, QueueVector const& p, QueueVector const& q, QueueVector& r) {
            return la::update_and_norm2(factor(alpha, x), p.value, q.value, x.value, r.value);
          },
          Release())
      .def(
          "dot", [](QueueVector const& x, QueueVector const& y) { return la::dot(x.value, y.value); }, Release())
      .def("norm", [](QueueVector const& x) { return la::norm(x.value); }, Release());
  m.def("dots", &dots_of, Release());
  m.def("gpu_available", [](std::string const& name) {
    std::string text;
    bool const found = device::gpu::available(name, text);
    return std::pair(found, text);
  });
  m.def("gpu_state", &gpu_state);
  m.def("set_library_folders", &device::gpu::set_library_folders);
  m.def("dlpack_interface", &dlpack_interface);
  m.def("gpu_device", &device::gpu::device);
  m.def("apply_queued", [](la::Operator const& A, QueueVector const& x, QueueVector& y) { A.apply(x.value, y.value); }, Release());
}

}  // namespace asterism::python
