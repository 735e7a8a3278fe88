// The levels of algebraic multigrid: one set-up, in steps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/precond/amg/classical.hpp"
#include "asterism/precond/amg/coarsening/dense_rows.hpp"
#include "asterism/precond/amg/coarsening/strength.hpp"
#include "asterism/precond/amg/level_smoother.hpp"
#include "asterism/precond/amg/null_vectors.hpp"
#include "asterism/precond/amg/pairwise.hpp"
#include "asterism/precond/multigrid/fewer_ranks.hpp"
#include "asterism/precond/multigrid/level_precision.hpp"

namespace asterism::precond::amg {

enum class AmgType : std::uint8_t { aggregation, classical };
enum class AggregationType : std::uint8_t { automatic, mis2, pairwise };
enum class Strength : std::uint8_t { symmetric, classical, evolution };

struct AmgOptions {
  AmgType type;
  ClassicalOptions classical;
  AggregationType aggregation;
  Strength strength;
  bool strength_given;  // it, or the threshold
  bool damping_given;
  double threshold, threshold_scale, damping;
  std::int64_t max_levels, coarse_size, coarse_rows_per_rank, block_size;
  CycleType cycle;
  SmootherOptions smoother;
  std::string precision;            // "auto": as fits the values
  std::string precision_of_levels;  // empty: one for all
  bool reuse, hermitian, measure;
};

/// What a level is made of that values do not change.
template <class T>
struct Interpolation {
  Layout coarse;
  std::optional<FewerRanks> fewer_ranks;  ///< that the coarse level moves to
  Rows<T> P, R;
  Matrix P_product, R_product;
  Buffer<T> near_null_space;  ///< of the coarse level
};
template <class T>
using Interpolations = std::vector<Interpolation<T>>;

struct LevelSize {
  std::int64_t rows, nnz, ranks;
  std::string storage, values;
  std::size_t bytes = 0;  ///< of all that the level holds: matrix, smoother, transfers
};

struct Hierarchy {
  std::vector<GridLevel> levels;
  std::vector<LevelSize> sizes;
  std::size_t boxes = 0;       ///< levels whose aggregates are boxes of a grid
  std::size_t unsmoothed = 0;  ///< levels whose prolongation is not smoothed, since it would fill the next one
  bool mixes_signs = false;    ///< the finest matrix, of one unknown a node
  bool open_degree = false;    ///< of the smoothers' polynomials
  std::size_t memory = 0;
  Dtype dtype;               ///< of the finest level
  std::int64_t columns = 1;  ///< of the near-null space
};

/// One set-up in the precision T; the levels are kept in `precisions`, or in that of the given matrix where there is one level.
template <class T>
class HierarchySetUp {
 public:
  /// kept: of an earlier set-up, which are used again; if it has none, they are put there if `keep` says so.
  HierarchySetUp(AmgOptions const& options, std::int64_t block_size, LevelPrecisions const& precisions, Interpolations<T>& kept, bool keep,
                 comm::Cancellation& cancel);
  /// A: the matrix in the precision T, maybe scaled; its rows are freed when they are not needed any more. given: as the user has it.
  /// largest_diagonal: of A. Collective.
  Hierarchy run(Matrix A, Matrix const& given, double largest_diagonal);

 private:
  /// What a coarser level is made of: aggregates of nodes, or coarse and fine unknowns.
  struct Coarsening {
    NodeGraph graph;
    bool by_diagonals = false;  ///< which couplings are strong
    bool has_dense_rows = false;
    Aggregates aggregates;
    Splitting<T> splitting;
  };
  void take_near_null_space(Matrix const& given);
  CoarseOrigin origin(Matrix const& given, Rows<T> const& rows) const;
  bool set_up_level(Matrix const& given);
  bool coarsen(RowFacts<T> const& facts, Coarsening& out);
  NodeGraph strong_graph(RowFacts<T> const& facts, Strength strength, double threshold) const;
  bool solve_directly(GridLevel& level, Matrix const& given);
  void choose_smoother(GridLevel& level, RowFacts<T> const& facts, double radius);
  void interpolate(Coarsening& found, double radius, Interpolation<T>& out);
  void interpolate_by_aggregates(Coarsening& found, double radius, Interpolation<T>& out);
  bool fills(Interpolation<T> const& between) const;
  void interpolate_classically(Coarsening& found, Interpolation<T>& out);
  Rows<T> coarse_operator(Interpolation<T> const& between);
  void store_transfers(Interpolation<T>& between, GridLevel& level);
  void store_operator(GridLevel& level);
  void go_to_coarse_level(Rows<T> next, Interpolation<T>& between);
  void move_to(FewerRanks& fewer);
  void at(double part);
  LevelPrecision const& precision() const { return precisions_.at(level_); }
  void count(std::size_t bytes);

  AmgOptions const& options_;
  LevelPrecisions precisions_;
  SmootherOptions smoother_;  // the same one on all levels
  Interpolations<T>& kept_;
  bool const keep_, again_;
  comm::Cancellation& cancel_;
  Interpolations<T> new_ones_;  // become the kept ones at the end, so that an error leaves these as they were
  Hierarchy out_;
  // of the level that is set up
  std::size_t level_ = 0;
  Matrix A_;
  Rows<T> rows_;
  Buffer<T> near_null_space_;  // (rows, columns) row-major
  KnownNullVectors<T> null_vectors_;
  RoundingRows<T> rounding_;
  double largest_diagonal_ = 0;     // of the finest matrix
  double rounding_of_sums_ = 0;     // in coarse matrices, beside the terms, where these cancel
  Buffer<std::int32_t> component_;  // of each of my rows in its node; none: the same
  std::int64_t block_size_, columns_ = 1;
  double threshold_, entries_before_ = 0;
};

}  // namespace asterism::precond::amg
