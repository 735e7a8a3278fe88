// In what the values of a level are held, and what it computes with.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

struct LevelPrecision {
  Dtype dtype = Dtype::float64;  ///< of vectors and arithmetic
  bool bfloat16 = false;         ///< so are the entries of matrices held; dtype is float32
  bool operator==(LevelPrecision const&) const = default;
  std::string_view name() const { return bfloat16 ? "bfloat16" : name_of(dtype); }
  /// The matrix with its entries rounded to what is held.
  Matrix of(Matrix const& A) const;
  /// The same for products alone, and so are other handles of A then, if it has that precision. adds: for apply_add() instead of the
  /// others.
  Matrix for_products(Matrix A, bool adds = false) const;
};

/// Of each level, the finest first; the last one counts for all that follow.
class LevelPrecisions {
 public:
  LevelPrecisions() = default;
  LevelPrecisions(Dtype of_all) : levels_{{of_all, false}} {}
  /// "float64,float32,bfloat16": words of -pc_amg_dtype, for a matrix of that dtype. An OptionError for a word that there is not, for more
  /// precision than the matrix has, and for complex entries in bfloat16.
  LevelPrecisions(std::string_view words, Dtype matrix);
  LevelPrecision const& at(std::size_t level) const { return levels_[std::min(level, levels_.size() - 1)]; }
  bool operator==(LevelPrecisions const&) const = default;

 private:
  std::vector<LevelPrecision> levels_{{}};
};

/// A transfer between levels whose vectors differ in dtype: it works in its own, that of the finer one, and vectors of the coarser one are
/// converted.
OperatorPtr restriction_into(OperatorPtr R, Dtype coarse);
OperatorPtr prolongation_from(OperatorPtr P, Dtype coarse);

}  // namespace asterism::precond
