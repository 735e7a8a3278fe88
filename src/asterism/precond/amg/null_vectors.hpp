// Null vectors that a hierarchy knows: rounding in its products may hide them on the last level.
#pragma once
#include <optional>

#include "asterism/la/products/rows.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/multigrid/cycle.hpp"

namespace asterism::precond::amg {

using la::Buffer, la::Rows;

/// Where R A P left a coarse matrix rounding alone: a singular component of the graph that has become one node. Its inverse would amplify
/// what rounding leaves in its residual.
template <class T>
struct RoundingRows {
  Buffer<double> terms;   ///< of each of my rows: the size of what it is a sum of, if it is such a row; else 0
  std::int64_t node = 1;  ///< rows of a node, one after the other
  bool any = false;       ///< on all ranks; false: terms may be empty

  /// Rows of `coarse` without a coupling to other nodes, whose entries are less than the tolerance of their terms. Collective.
  static RoundingRows find(Rows<T> const& coarse, Rows<T> const& R, Rows<T> const& fine, Layout const& fine_rows, std::int64_t node,
                           double tolerance);
  /// Zeros in these rows and their columns; on the diagonal the size of the terms, or zero.
  void decouple(Rows<T>& A, bool zero_diagonal = false) const;
};

/// Columns of the near-null space that the finest matrix maps to zero, up to the rounding of each row's terms.
template <class T>
class KnownNullVectors {
 public:
  KnownNullVectors() = default;
  /// modes: (my rows, columns) row-major; none: constants of each of so many components. Most matrices show in their first rows that no
  /// column is one. Collective.
  KnownNullVectors(Rows<T> const& A, Layout const& rows, std::optional<Buffer<T>> modes, std::int64_t columns);

  /// For the solver of the last level, `coarse`. modes: the near-null space there; none: ones. If that level consists of parts without a
  /// coupling, some of them may have null vectors where others have none: then the finest matrix is looked at as a whole, and `levels`,
  /// with vectors of these precisions, restrict what was found. Rows that are rounding, and zero here, are null vectors by themselves.
  /// Collective.
  CoarseOrigin on_last_level(Matrix const& finest, Rows<T> const& coarse, Layout const& rows, Buffer<T> const& modes,
                             std::vector<GridLevel> const& levels, std::vector<Dtype> const& dtypes, RoundingRows<T> const& rounding) const;

 private:
  std::optional<Buffer<T>> modes_;
  std::int64_t columns_ = 0;
  std::vector<char> everywhere_;  // of each column
};

}  // namespace asterism::precond::amg
