// An operator that hides that it is a matrix.
#pragma once
#include "asterism/la/matrix.hpp"

namespace asterism::test {

/// A matrix that shows nothing but what it does to a vector, and its diagonal: kernels of a grid, say.
class Bare final : public la::Operator {
 public:
  explicit Bare(la::Matrix A) : A_(std::move(A)) {}
  la::Space const& range() const override { return A_.range(); }
  la::Space const& domain() const override { return A_.domain(); }
  Dtype dtype() const override { return A_.dtype(); }
  void apply(la::Vector const& x, la::Vector& y) const override { A_.apply(x, y); }
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override { A_.apply_transpose(x, y, conjugate); }
  la::Vector diagonal() const override { return A_.diagonal(); }
  std::string describe() const override { return "bare"; }

 private:
  la::Matrix A_;
};

}  // namespace asterism::test
