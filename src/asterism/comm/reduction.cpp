#include "asterism/comm/reduction.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <optional>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/node_collective.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/gpu/messenger.hpp"
#include "asterism/comm/reduction.kernels.hpp"

namespace asterism::comm {
namespace {
using Value = device::Scalar::Value;
/// Then the partial sums are gathered and added in rank order by everybody: the bits agree whatever algorithm MPI chooses, and a small
/// gather costs what a small reduce costs.
bool gathers(Communicator const& comm) { return comm.size() <= limits().gather_ranks; }
}  // namespace

struct Reduction::Flight {
  std::optional<NodeCollective> on_node;
  MpiApi::Batch batch = nullptr;
  bool rounded = false;  // a sum of MPI's own, of real numbers
  ~Flight() {
    if (batch) mpi()->batch_free(batch);
  }
  /// Begins to give the bytes to all ranks.
  void gather(Communicator const& comm, std::byte const* in, std::byte* out, std::int64_t bytes) {
    if (NodeCollective::serves(comm)) {
      on_node.emplace(comm);
      on_node->send_to_all({in, std::size_t(bytes)});
      std::memcpy(out + comm.rank() * bytes, in, std::size_t(bytes));
      return;
    }
    batch = mpi()->batch_new();
    check_mpi(mpi()->iallgather(batch, comm.handle(), in, out, bytes), "MPI_Iallgather");
  }
  void sum(Communicator const& comm, void const* in, void* out, std::int64_t count, MpiApi::Type type) {
    batch = mpi()->batch_new();
    rounded = type == MpiApi::float64;
    check_mpi(mpi()->iallreduce(batch, comm.handle(), in, out, count, type, MpiApi::sum), "MPI_Iallreduce");
  }
  /// `keep`: what MPI uses.
  void end(Communicator const& comm, std::byte* out, std::int64_t bytes, std::initializer_list<device::Array> keep) {
    if (on_node)
      return on_node->receive([&](int rank, std::span<std::byte const> theirs) {
        ASTERISM_REQUIRE(
            std::int64_t(theirs.size()) == bytes, comm,
            "rank {} gives {} bytes to a sum to which rank {} gives {}: the ranks are in different calls, or their vectors have "
            "different numbers of columns.",
            rank, theirs.size(), comm.rank(), bytes);
        std::memcpy(out + rank * bytes, theirs.data(), theirs.size());
      });
    try {
      wait_for(comm, batch, "the end of a sum");
      // MPI does not promise the same bits on all ranks, and ranks that decide differently would wait for each other: rank 0's are taken
      if (rounded) {
        check_mpi(mpi()->ibcast(batch, comm.handle(), out, bytes, 0), "MPI_Ibcast");
        wait_for(comm, batch, "the end of a sum");
      }
    } catch (...) {
      comm.give_up(std::make_shared<std::vector<device::Array>>(keep));
      batch = nullptr;
      throw;
    }
  }
};

Reduction::Reduction(Communicator const& comm, device::Queue const& queue, std::int64_t n)
    : comm_(comm), queue_(queue), n_(n), partial_(device::Array::fresh(queue, std::size_t(n) * sizeof(Value))) {
  if (comm.size() == 1) {
    total_ = partial_;
    return;
  }
  messenger_ = sent_by(queue, comm);
  bool const all = messenger_ || gathers(comm);
  gathered_ = device::Array::fresh(queue, std::size_t(n) * sizeof(Value) * std::size_t(all ? comm.size() : 1));
  total_ = device::Array::fresh(queue, std::size_t(n) * sizeof(Value));
  if (!messenger_) flight_ = std::make_shared<Flight>();
}

void Reduction::begin() {
  if (comm_.size() == 1) return;
  profile::count_reduction();
  if (messenger_) return messenger_->all_gather(partial_, gathered_);
  device::submit_on_host(
      queue_,
      [comm = comm_, n = n_, flight = flight_](device::Executor&, std::byte*, Value const* in, Value* out) {
        auto const* const from = reinterpret_cast<std::byte const*>(in);
        if (gathers(comm)) flight->gather(comm, from, reinterpret_cast<std::byte*>(out), n * std::int64_t(sizeof(Value)));
        else flight->sum(comm, in, out, 2 * n, MpiApi::float64);
      },
      device::update<std::byte>(comm_.order_token()), device::read<Value>(partial_), device::write<Value>(gathered_));
}

void Reduction::end() {
  if (comm_.size() == 1) return;
  using device::Number;
  std::int64_t const parts = messenger_ || gathers(comm_) ? comm_.size() : 1;
  if (messenger_)
    return device::submit(queue_, kernel::add_parts, n_, parts, device::read<Number>(gathered_), device::write<Number>(total_));
  device::submit_on_host(
      queue_,
      [n = n_, parts, flight = flight_, comm = comm_, arrays = std::pair(partial_, gathered_)](device::Executor& executor, std::byte*,
                                                                                               Number const*, Number* in, Number* out) {
        flight->end(comm, reinterpret_cast<std::byte*>(in), n * std::int64_t(sizeof(Value)), {arrays.first, arrays.second});
        kernel::add_parts(executor, n, parts, in, out);
      },
      device::update<std::byte>(comm_.order_token()), device::read<Number>(partial_), device::update<Number>(gathered_),
      device::write<Number>(total_));
}

device::Scalar Reduction::result(std::int64_t offset, std::int64_t k) const { return device::Scalar::pending(queue_, total_, offset, k); }

namespace {
constexpr std::int64_t words = ReproducibleSum::words;
}

ReproducibleReduction::ReproducibleReduction(Communicator const& comm, device::Queue const& queue, std::int64_t n)
    : comm_(comm),
      queue_(queue),
      n_(n),
      partial_(std::size_t(2 * n * words) * sizeof(std::int64_t)),
      sum_(comm.size() == 1 ? partial_ : device::Array(partial_.bytes())),
      total_(std::size_t(n) * sizeof(Value)),
      flight_(std::make_shared<Reduction::Flight>()) {
  std::fill_n(partial_.as<std::int64_t>(), 2 * n * words, 0);
}

void ReproducibleReduction::begin() {
  if (comm_.size() == 1) return;
  profile::count_reduction();
  device::submit_on_host(
      queue_,
      [comm = comm_, n = n_, flight = flight_](device::Executor&, std::byte*, std::int64_t const* in, std::int64_t* out) {
        flight->sum(comm, in, out, 2 * n * words, MpiApi::int64);
      },
      device::update<std::byte>(comm_.order_token()), device::read<std::int64_t>(partial_), device::write<std::int64_t>(sum_));
}

void ReproducibleReduction::end() {
  auto const round = [n = n_](std::int64_t const* in, Value* out) {
    for (std::int64_t i = 0; i < n; ++i, in += 2 * words)
      out[i] = {ReproducibleSum::value({in, std::size_t(words)}), ReproducibleSum::value({in + words, std::size_t(words)})};
  };
  if (comm_.size() == 1) {
    device::submit(
        queue_, [round](device::Executor&, std::int64_t const* in, Value* out) { round(in, out); }, device::read<std::int64_t>(sum_),
        device::write<Value>(total_));
    return;
  }
  device::submit_on_host(
      queue_,
      [round, flight = flight_, comm = comm_, arrays = std::pair(partial_, sum_)](device::Executor&, std::byte*, std::int64_t const* in,
                                                                                  Value* out) {
        flight->end(comm, nullptr, 0, {arrays.first, arrays.second});
        round(in, out);
      },
      device::update<std::byte>(comm_.order_token()), device::read<std::int64_t>(sum_), device::write<Value>(total_));
}

device::Scalar ReproducibleReduction::result(std::int64_t offset, std::int64_t k) const {
  return device::Scalar::pending(queue_, total_, offset, k);
}

}  // namespace asterism::comm
