// Preconditioners that each rank makes for itself, of a block of its own, under the prefix sub_.
#pragma once
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// What is told of it is true of the inner ones of all ranks: blocks differ, so one of them alone may be unsymmetric, say.
class EachRank : public Preconditioner {
 public:
  bool updated_from_scratch() const override { return inner_->updated_from_scratch(); }
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }
  bool symmetric() const override { return symmetric_; }
  bool varies() const override { return varies_; }
  void set_hermitian(bool yes) override { inner_->set_hermitian(yes); }

 protected:
  using Preconditioner::Preconditioner;
  Preconditioner const& inner() const { return *inner_; }
  /// rows: of the block, a space of this process alone. What fails on one rank fails on all. Collective.
  void make(Nest const& nest, la::Csr const& block, Space const& rows);
  /// The second phase; whether all ranks could do it. Collective.
  bool update_inner(la::Csr const& block, Space const& rows);

 private:
  void look_at_all();
  PreconditionerPtr inner_;
  bool symmetric_ = true, varies_ = false;
};

/// The rows of a block of mine as a space of this process alone, where messages call them what they are in the whole matrix.
Space rows_of_block(std::int64_t count, std::function<std::string(std::int64_t place)> names);

}  // namespace asterism::precond
