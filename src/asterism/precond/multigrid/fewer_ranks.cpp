#include "asterism/precond/multigrid/fewer_ranks.hpp"

#include <algorithm>

namespace asterism::precond {
namespace {

/// A transfer to or from a level whose rows have moved.
class MovedTransfer : public Operator {
 public:
  MovedTransfer(OperatorPtr transfer, Space before, Space after, comm::QueuedForest forest)
      : transfer_(std::move(transfer)), before_(std::move(before)), after_(std::move(after)), forest_(std::move(forest)) {}
  Dtype dtype() const override { return transfer_->dtype(); }
  std::string describe() const override {
    return format("{}, on {} of {} ranks", transfer_->describe(), ranks_with_rows(after_), after_.comm().size());
  }

 protected:
  /// A vector of the level as it was.
  auto lease(Vector const& like) const {
    return work_.lease(like, [&] { return Vector(before_, dtype(), like.columns(), like.queue()); });
  }
  OperatorPtr transfer_;
  Space before_, after_;
  comm::QueuedForest forest_;  // its roots are the rows before, its leaves those after

 private:
  mutable Scratch<Vector> work_;
};

class MovedRestriction final : public MovedTransfer {
 public:
  using MovedTransfer::MovedTransfer;
  Space const& range() const override { return after_; }
  Space const& domain() const override { return transfer_->domain(); }
  void apply(Vector const& x, Vector& y) const override {
    auto const w = lease(x);
    transfer_->apply(x, *w);
    forest_.bcast_begin(y.queue(), dtype(), y.columns(), w->data(), y.data()).end();
  }
};

class MovedProlongation final : public MovedTransfer {
 public:
  using MovedTransfer::MovedTransfer;
  Space const& range() const override { return transfer_->range(); }
  Space const& domain() const override { return after_; }
  void apply(Vector const& x, Vector& y) const override {
    auto const w = lease(x);
    move_back(x, *w);
    transfer_->apply(*w, y);
  }
  void apply_add(Vector const& x, Vector& y) const override {
    auto const w = lease(x);
    move_back(x, *w);
    transfer_->apply_add(*w, y);
  }

 private:
  void move_back(Vector const& x, Vector& w) const {
    forest_.reduce_begin(x.queue(), dtype(), x.columns(), x.data(), w.data(), comm::ReduceOp::replace).end();
  }
};

}  // namespace

std::int64_t ranks_with_rows(Layout const& layout) {
  auto const& offsets = layout.offsets();
  std::int64_t out = 0;
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) out += offsets[r] < offsets[r + 1];
  return out;
}

std::optional<FewerRanks> FewerRanks::of(Layout const& level, std::int64_t rows_per_rank) {
  auto const n = level.global_size();
  if (rows_per_rank == 0 || n == 0 || n / rows_per_rank >= level.comm().size()) return std::nullopt;
  auto const ranks = std::max<std::int64_t>(1, n / rows_per_rank);
  if (ranks_with_rows(level) <= ranks) return std::nullopt;
  // the part of all rows in which a rank's begin says whose they will be
  auto const& offsets = level.offsets();
  auto const part = [&](std::size_t rank) { return offsets[rank] * ranks / n; };
  std::int64_t owner = 0, of_part = -1, mine = 0;
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
    if (offsets[r] == offsets[r + 1]) continue;
    if (part(r) != of_part) owner = std::int64_t(r), of_part = part(r);
    if (int(r) == level.comm().rank()) mine = owner;
  }
  return FewerRanks(level, std::vector<std::int64_t>(std::size_t(level.local_size()), mine));
}

OperatorPtr FewerRanks::restriction(OperatorPtr R) const {
  return std::make_shared<MovedRestriction>(std::move(R), move_.from(), to(), forest_);
}
OperatorPtr FewerRanks::prolongation(OperatorPtr P) const {
  return std::make_shared<MovedProlongation>(std::move(P), move_.from(), to(), forest_);
}

}  // namespace asterism::precond
