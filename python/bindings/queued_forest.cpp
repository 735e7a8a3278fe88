#include "asterism/comm/forest/queued_forest.hpp"

#include "asterism/apps/forest_timing.hpp"
#include "asterism/comm/gpu/messenger.hpp"

#include "bindings.hpp"
#include "queue_vector.hpp"

namespace asterism::python {

using comm::QueuedForest;
using comm::ReduceOp;
using la::Vector;

namespace {

/// A star forest with one queue.
struct OnQueue {
  QueuedForest forest;
  device::Queue queue;
  comm::Layout roots, leaves;
  OnQueue(comm::StarForest const& f, device::Queue q)
      : forest(f, q), queue(std::move(q)), roots(f.comm(), f.roots()), leaves(f.comm(), f.leaf_space()) {}
};

using Flight = Unlocked<std::shared_ptr<QueuedForest::Flight>>;
using Forest = Unlocked<std::shared_ptr<OnQueue>>;

Flight flight(QueuedForest::Flight f) { return std::make_shared<QueuedForest::Flight>(std::move(f)); }

/// Of the same kind, as all data of one operation are; their lengths are looked at below.
Vector const& same_kind(Vector const& v, Vector const& as) {
  ASTERISM_REQUIRE(v.dtype() == as.dtype() && v.columns() == as.columns(), shape,
                   "the vectors of one operation differ: {} columns of {}, {} of {}.", as.columns(), name_of(as.dtype()), v.columns(),
                   name_of(v.dtype()));
  return v;
}

}  // namespace

void bind_queued_forest(nb::module_& m) {
  m.def("ranks_share_a_gpu", &comm::ranks_share_a_gpu, nb::call_guard<GilRelease>());
  nb::class_<Flight>(m, "QueuedFlight").def("end", [](Flight& f) { f.value->end(); }, nb::call_guard<GilRelease>());
  nb::class_<Forest>(m, "QueuedForest")
      .def_static(
          "make", [](comm::StarForest const& forest, Queue const& q) -> Forest { return std::make_shared<OnQueue>(forest, q.value); },
          nb::call_guard<GilRelease>())
      .def_prop_ro("roots", [](Forest const& f) { return f.value->roots; })
      .def_prop_ro("leaves", [](Forest const& f) { return f.value->leaves; })
      .def_prop_ro("transport", [](Forest const& f) { return f.value->forest.transport(); })
      .def(
          "wait", [](Forest const& f) { f.value->forest.wait(f.value->queue); }, nb::call_guard<GilRelease>())
      .def(
          "bcast_begin",
          [](Forest const& f, QueueVector const& root, QueueVector const& leaf, int op) {
            auto const& r = root.value;
            return flight(f.value->forest.bcast_begin(f.value->queue, r.dtype(), r.columns(), r.data(), same_kind(leaf.value, r).data(),
                                                      ReduceOp(op)));
          },
          nb::call_guard<GilRelease>())
      .def(
          "reduce_begin",
          [](Forest const& f, QueueVector const& leaf, QueueVector const& root, int op) {
            auto const& l = leaf.value;
            return flight(f.value->forest.reduce_begin(f.value->queue, l.dtype(), l.columns(), l.data(), same_kind(root.value, l).data(),
                                                       ReduceOp(op)));
          },
          nb::call_guard<GilRelease>())
      .def(
          "fetch_and_op_begin",
          [](Forest const& f, QueueVector const& root, QueueVector const& leaf, QueueVector const& update, int op) {
            auto const& r = root.value;
            return flight(f.value->forest.fetch_and_op_begin(f.value->queue, r.dtype(), r.columns(), r.data(),
                                                             same_kind(leaf.value, r).data(), same_kind(update.value, r).data(),
                                                             ReduceOp(op)));
          },
          nb::call_guard<GilRelease>())
      .def(
          "time_pingpong",
          [](Forest const& f, std::int64_t k, int op, int repeats) {
            return apps::queued_pingpong(f.value->forest, f.value->queue, k, ReduceOp(op), repeats);
          },
          nb::call_guard<GilRelease>())
      .def(
          "time_exchange",
          [](Forest const& f, std::int64_t k, int op, int repeats) {
            return apps::queued_exchange(f.value->forest, f.value->queue, k, ReduceOp(op), repeats);
          },
          nb::call_guard<GilRelease>());
}

}  // namespace asterism::python
