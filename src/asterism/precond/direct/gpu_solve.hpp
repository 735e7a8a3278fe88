// Applications of sparse factors on GPUs.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/comm/gpu/messenger.hpp"
#include "asterism/direct/triangular/gpu/gpu_factors.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::precond {

/// y = A^-1 x on queues of GPUs, and the way there and back where the factors have other rows than the vectors.
class GpuSolve {
 public:
  explicit GpuSolve(std::shared_ptr<direct::GpuFactors const> factors) : factors_(std::move(factors)) {}
  /// factors: nothing on ranks that have none. rows, columns: from a right-hand side, and an answer, to the numbers of the factors.
  /// Collective.
  GpuSolve(std::shared_ptr<direct::GpuFactors const> factors, comm::StarForest const& rows, comm::StarForest const& columns)
      : factors_(std::move(factors)), rows_(rows), columns_(columns) {}

  void submit(char trans, la::Vector const& x, la::Vector const& y) const {
    auto const& queue = y.queue();
    auto const k = x.columns();
    if (!rows_) return factors_->submit(queue, trans, k, x.data(), y.data());
    auto const here = rows_->forest().leaf_space() * k;
    auto const w = device::Array::fresh(queue, std::size_t(here) * size_of(x.dtype()));
    (trans == 'N' ? rows_ : columns_)->bcast_begin(queue, x.dtype(), k, x.data(), w).end();
    if (factors_) factors_->submit(queue, trans, k, w, w);
    (trans == 'N' ? columns_ : rows_)->reduce(queue, x.dtype(), k, w, y.data(), comm::ReduceOp::replace);
  }
  std::size_t memory_bytes() const { return factors_ ? factors_->memory_bytes() : 0; }

 private:
  std::shared_ptr<direct::GpuFactors const> factors_;
  std::optional<comm::QueuedForest> rows_, columns_;
};

/// What -pc_factor_gpu_solve says.
enum class GpuSolves : std::uint8_t { automatic, always, never };

/// Solves on GPUs, or why they are on the host. Made when somebody asks; forgotten with the factors.
class GpuSolveState {
 public:
  explicit GpuSolveState(GpuSolves wanted) : wanted_(wanted) {}

  void forget() { asked_ = false, solve_ = nullptr, why_.clear(); }
  /// make(): a GpuSolve; an error of kind unsupported or memory, on all ranks, leaves solves on the host. by_all: kernels of different
  /// ranks wait for each other. Collective.
  template <class Make>
  void prepare(comm::Communicator const& comm, device::Queue const& queue, bool by_all, Make const& make) {
    forget();
    asked_ = true;
    bool const here = wanted_ != GpuSolves::never && queue.memory() == device::Memory::gpu;
    if (comm.size() > 1 ? comm.min(std::int64_t(here)) == 0 : !here) return;
    try {
      ASTERISM_REQUIRE(!by_all || wanted_ == GpuSolves::always || !comm::ranks_share_a_gpu(comm), unsupported,
                       "ranks share a GPU, on which their kernels would take turns. -pc_factor_gpu_solve true solves there all the same.");
      solve_ = std::make_shared<GpuSolve const>(make());
    } catch (Error const& e) {
      if (e.kind() != ErrorKind::unsupported && e.kind() != ErrorKind::memory) throw;
      why_ = e.what();
    }
  }
  bool asked() const { return asked_; }
  std::shared_ptr<GpuSolve const> const& solve() const { return solve_; }
  /// For people; nothing if they are on GPUs, or none was asked for.
  std::vector<std::string> notes(std::string const& name) const {
    if (why_.empty()) return {};
    return {format("{}: solves on the host: {}", name, why_)};
  }

 private:
  GpuSolves wanted_;
  bool asked_ = false;
  std::shared_ptr<GpuSolve const> solve_;
  std::string why_;
};

}  // namespace asterism::precond
