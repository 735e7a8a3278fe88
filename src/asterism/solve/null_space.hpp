// Vectors that a matrix maps to zero, and the removal of their part from others.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/la/components.hpp"
#include "asterism/la/matrix.hpp"
#include "asterism/la/vectors/row_parts.hpp"

namespace asterism::solve {

class NullSpace {
 public:
  NullSpace() = default;
  /// Spanned by the vectors, (n) each; those that depend on others are left out. Collective.
  explicit NullSpace(std::vector<la::Vector> const& vectors);
  /// Spanned by what each vector is on each part of the rows, which are connected components of a matrix. Each part is zero or a null
  /// vector by itself. Collective.
  NullSpace(std::vector<la::Vector> const& vectors, la::RowParts parts, std::int64_t components_of_matrix);
  bool empty() const { return basis_.empty(); }
  std::size_t dimension() const { return dimension_; }
  /// Connected components of the matrix that have null vectors of their own; 1 if it was not taken apart.
  std::int64_t components() const { return parts_.count > 0 ? parts_.count : 1; }
  /// Where in the matrix, to follow the dimension in a message; empty if it was not taken apart.
  std::string where() const;
  /// y -= Z Z^H y for an orthonormal basis Z, y of one column; returns Z^H y, in numbers of any width. One message.
  std::vector<la::Scalar> remove_from(la::Vector& y) const;

  /// More components have null vectors than are taken apart.
  static constexpr std::int64_t most_components = 64;
  std::int64_t components_not_taken_apart = 0;

 private:
  std::vector<la::Vector> basis_;  // with parts, orthonormal on each of them
  std::size_t dimension_ = 0;
  la::RowParts parts_;
  std::int64_t components_of_matrix_ = 1;
};

/// M followed by the removal of the null space: iterates stay in its complement. before: it is removed from what M reads, too, of which
/// factors with pivots at rounding level would make more than there is of the rest. Of a Hermitian matrix.
class WithoutNullSpace final : public la::Operator {
 public:
  WithoutNullSpace(std::shared_ptr<la::Operator const> inner, NullSpace const& space, bool before = false)
      : inner_(std::move(inner)), space_(space), before_(before) {}
  la::Space const& range() const override { return inner_->range(); }
  la::Space const& domain() const override { return inner_->domain(); }
  Dtype dtype() const override { return inner_->dtype(); }
  void apply(la::Vector const& x, la::Vector& y) const override {
    inner_->apply(before_ ? in_complement(x) : x, y);
    space_.remove_from(y);
  }
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override {
    inner_->apply_transpose(in_complement(x), y, conjugate);
    if (before_) space_.remove_from(y);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  la::Vector in_complement(la::Vector const& x) const {
    auto out = x.like();
    copy(x, out);
    space_.remove_from(out);
    return out;
  }
  std::shared_ptr<la::Operator const> inner_;
  NullSpace const& space_;
  bool before_;
};

/// What a Hermitian matrix has in its null space of the vectors that often are: constants, constants of each unknown of a node, and its
/// near-null vectors (rigid-body modes of a free body). If it consists of several connected components, these vectors are tried on each
/// of them. Collective; a product for each, or two, and a search for components where some of them may be singular.
NullSpace detected_null_space(la::Matrix const& A);

/// Of an operator without entries whose products are of that size: constants. Collective; a product.
NullSpace detected_null_space(la::Operator const& A, double size);

/// The user's, (n, k): an error with the norm of A times a column that is not zero. size: of an operator without entries, as above; 0: it
/// is not known, and nothing is checked. Of a matrix of several connected components what a column is on each of them. Collective.
NullSpace given_null_space(la::Operator const& A, la::Vector const& vectors, double size);

}  // namespace asterism::solve
