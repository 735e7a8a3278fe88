// The adjoint of an operator, as an operator.
#pragma once
#include <memory>

#include "asterism/la/operator.hpp"

namespace asterism::la {

/// A^H: products are the adjoint products of A, and the other way round.
class Adjoint final : public Operator {
 public:
  explicit Adjoint(std::shared_ptr<Operator const> of) : of_(std::move(of)) {}
  Space const& range() const override { return of_->domain(); }
  Space const& domain() const override { return of_->range(); }
  Dtype dtype() const override { return of_->dtype(); }
  void apply(Vector const& x, Vector& y) const override { of_->apply_transpose(x, y, true); }
  /// Complex without conjugation: two passes over the vectors besides.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override;
  Vector diagonal() const override;
  bool is_identity() const override { return of_->is_identity(); }
  std::string describe() const override { return format("the adjoint of {}", of_->describe()); }

 private:
  std::shared_ptr<Operator const> of_;
};

}  // namespace asterism::la
