#include "asterism/precond/amg/hierarchy.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/la/products/galerkin.hpp"
#include "asterism/la/products/sparse_product.hpp"
#include "asterism/precond/amg/coarsening/grid_boxes.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/direct/sparse_direct.hpp"

namespace asterism::precond::amg {
namespace {

// where no coarser level can be made
constexpr std::int64_t most_rows_to_invert = 4000;
constexpr std::int64_t most_rows_to_factor = 20000;
// from so many on sparse factors are faster than a dense inverse, which costs the cube of the rows: of a coarse level, and of a whole
// matrix
constexpr std::int64_t rows_to_factor = 2000, rows_of_all_to_factor = 100;

constexpr double damping_of_boxes = 1.8;  // with 4/3, columns of P are too far from linear interpolation: decision 041

/// A column of P that was dropped (dependent near-null vectors) leaves an empty row and column: 1 on the diagonal decouples it.
template <class T>
void decouple_empty_rows(Rows<T>& A) {
  for (std::int32_t i = 0; i < A.count; ++i) {
    auto const *const first = A.col.data() + A.ptr[i], *const last = A.col.data() + A.ptr[i + 1];
    auto const* const at = std::lower_bound(first, last, i + A.map.below);
    if (at == last || *at != i + A.map.below) continue;
    auto& diagonal = A.val[at - A.col.data()];
    auto const *const values = A.val.data() + A.ptr[i], *const end = A.val.data() + A.ptr[i + 1];
    if (diagonal == T(0) && std::all_of(values, end, [](T v) { return v == T(0); })) diagonal = T(1);
  }
}

/// Sparse factors on the first rank, of vectors of that dtype; in the matrix's own if they are to be as wide as needed and it is. Nothing
/// where they do not fit, or where the condition number is above `most`, so that the matrix may be singular: a dense inverse leaves such
/// directions out.
PreconditionerPtr factors_of(Matrix const& A, Dtype given, Dtype dtype, bool as_needed, double most) {
  constexpr double most_for_float32 = 1e5;
  most = std::min(most, 0.01 / epsilon_of(given));  // entries that were rounded hide that a matrix is singular
  auto const condition_of = [&](Preconditioner const& factors) {
    double condition = factors.factors()->facts().condition;
    A.comm().bcast(&condition, sizeof condition, 0);
    return condition;
  };
  SparseRule rule;
  rule.name = "lu";
  try {
    auto const narrow = A.converted(dtype);
    bool const is_narrow = dtype != A.dtype();
    auto made = sparse_direct(narrow, rule);
    double const condition = condition_of(*made);
    if (!is_narrow || condition <= most_for_float32) return condition <= most ? made : nullptr;
    if (!as_needed) return nullptr;
    made = sparse_direct(A, rule);
    return condition_of(*made) <= most ? std::make_shared<Cast>(narrow, made, A.dtype()) : nullptr;
  } catch (Error const& e) {
    if (!comm::is_of_all(A.comm(), e) || (e.kind() != ErrorKind::value && e.kind() != ErrorKind::memory)) throw;
    return nullptr;
  }
}

}  // namespace

template <class T>
HierarchySetUp<T>::HierarchySetUp(AmgOptions const& options, std::int64_t block_size, LevelPrecisions const& precisions,
                                  Interpolations<T>& kept, bool keep, comm::Cancellation& cancel)
    : options_(options),
      precisions_(precisions),
      smoother_(options.smoother),
      kept_(kept),
      keep_(keep),
      again_(!kept.empty()),
      cancel_(cancel),
      block_size_(block_size),
      threshold_(options.threshold) {
  out_.dtype = precisions_.at(0).dtype;
}

template <class T>
Hierarchy HierarchySetUp<T>::run(Matrix A, Matrix const& given, double largest_diagonal) {
  largest_diagonal_ = largest_diagonal;
  rounding_of_sums_ =
      la::null_rounding_of_rows * std::max(epsilon_of(given.dtype()), epsilon_of(dtype_v<T>) * (10 + std::sqrt(double(A.global_rows()))));
  A_ = std::move(A);
  rows_ = rows_of<T>(A_);
  take_near_null_space(given);
  while (set_up_level(given)) ++level_;
  if (keep_ && !again_) kept_ = std::move(new_ones_);
  for (auto const& k : kept_) {
    out_.memory += std::size_t(k.P.nnz() + k.R.nnz()) * (sizeof(T) + sizeof(std::int32_t));
    if (k.fewer_ranks) out_.memory += k.fewer_ranks->memory_bytes();
  }
  return std::move(out_);
}

/// What the space knows of it, or the constants of each component.
template <class T>
void HierarchySetUp<T>::take_near_null_space(Matrix const& given) {
  if (options_.type == AmgType::classical) {  // interpolates each component by itself, and constants by what A says of them
    out_.columns = columns_ = block_size_;
    if (block_size_ == 1) {
      null_vectors_ = {rows_, given.range(), std::nullopt, 1};
      return;
    }
    component_ = Buffer<std::int32_t>(given.range().local_size());
    for (std::int64_t i = 0; i < component_.size(); ++i) component_[i] = std::int32_t((given.range().begin() + i) % block_size_);
    return;
  }
  auto const modes = la::near_null_space_of(given.range(), dtype_v<T>);
  if (modes) {
    columns_ = modes.columns();
    near_null_space_ = Buffer<T>(modes.data());
  } else {
    auto const n = given.range().local_size(), m = columns_ = block_size_;
    near_null_space_ = Buffer<T>(n * m);
    la::cancellable_for(cancel_, n, [m, to = near_null_space_.data()](std::int64_t i) {
      for (std::int64_t j = 0; j < m; ++j) to[i * m + j] = T(real_t<T>(j == i % m));
    });
  }
  out_.columns = columns_;
  null_vectors_ = {rows_, given.range(), modes ? std::optional(near_null_space_) : std::nullopt, columns_};
}

/// What the last level's solver should know.
template <class T>
CoarseOrigin HierarchySetUp<T>::origin(Matrix const& given, Rows<T> const& rows) const {
  std::vector<Dtype> dtypes;
  for (std::size_t l = 0; l <= level_; ++l) dtypes.push_back(precisions_.at(l).dtype);
  auto const modes = options_.type == AmgType::aggregation ? near_null_space_ : Buffer<T>();
  auto out = null_vectors_.on_last_level(given, rows, A_.range(), modes, out_.levels, dtypes, rounding_);
  out.largest_diagonal = largest_diagonal_;
  return out;
}

/// Whether there is a coarser level.
template <class T>
bool HierarchySetUp<T>::set_up_level(Matrix const& given) {
  out_.sizes.push_back({A_.global_rows(), A_.nnz(), ranks_with_rows(A_.range()), "", std::string(precision().name())});
  at(0);
  GridLevel level;
  Coarsening found;
  auto facts = look_at_rows(rows_, A_.range(), cancel_);
  bool const last = again_ ? level_ == kept_.size() : !coarsen(facts, found);
  if (last && solve_directly(level, given)) {
    out_.levels.push_back(std::move(level));
    return false;
  }
  double const radius = spectral_radius(rows_, A_.range(), facts, cancel_);
  choose_smoother(level, facts, radius);
  facts = {};
  if (last) {  // too large to factor, too decoupled to coarsen: the smoother alone
    level.A = std::make_shared<Matrix>(precision().of(A_));
    if (!level.smoother) level.smoother = smoother_of_matrix(smoother_, *level.A->matrix(), options_.hermitian);
    out_.sizes.back().storage = std::string(level.A->matrix()->storage_name());
    count(level.A->matrix()->memory_bytes() + level.smoother->memory_bytes());
    out_.levels.push_back(std::move(level));
    return false;
  }
  at(0.25);
  Interpolation<T> made;
  auto& between = again_ ? kept_[level_] : made;
  out_.boxes += found.aggregates.boxes;
  if (!again_) interpolate(found, radius, between);
  at(0.5);
  auto next = coarse_operator(between);
  rows_ = {};  // on several ranks this is a copy: what is stored next uses its memory
  at(0.85);
  {
    static int const event = profile::event("AMGStore");
    profile::Scope const scope(event);
    store_transfers(between, level);
    at(0.9);
    store_operator(level);
    at(0.95);
    go_to_coarse_level(std::move(next), between);
  }
  out_.levels.push_back(std::move(level));
  return true;
}

/// Whether there is a coarser level.
template <class T>
bool HierarchySetUp<T>::coarsen(RowFacts<T> const& facts, Coarsening& out) {
  auto const n = A_.global_rows();
  if (n <= options_.coarse_size || std::int64_t(level_) + 1 >= options_.max_levels) return false;
  // no progress: all couplings are weak, or every node stands alone. Of cycles that visit a level twice as often as the one above, the
  // visits must not cost more and more
  double const most = options_.cycle == CycleType::w || options_.cycle == CycleType::k ? 0.6 : 0.9;
  auto const is_fewer = [n, most](std::int64_t coarse) { return coarse > 0 && double(coarse) <= most * double(n); };
  if (options_.type == AmgType::classical) {
    out.splitting = split(rows_, A_.range(), block_size_, component_, threshold_, options_.classical, cancel_);
    at(0.15);
    return is_fewer(out.splitting.coarse.global_size());
  }
  bool const pairwise = options_.aggregation == AggregationType::pairwise;
  out.by_diagonals = !pairwise && options_.strength == Strength::symmetric;
  out.has_dense_rows = !pairwise && facts.longest_row > longest_sparse_row(n, block_size_);
  bool const boxes = options_.aggregation == AggregationType::automatic && !out.has_dense_rows;
  auto const aggregates_of = [&](NodeGraph graph) {
    out.graph = std::move(graph);
    if (out.has_dense_rows) set_dense_rows_apart(out.graph, rows_, A_.range(), block_size_, cancel_);
    at(0.1);
    auto grid = boxes ? lengths_of_grid(out.graph) : std::vector<std::int64_t>();
    if (!grid.empty() && !couplings_are_even(rows_, out.graph, grid, block_size_)) grid.clear();
    out.aggregates =
        pairwise ? pairwise_aggregates(rows_, out.graph, block_size_, threshold_, cancel_) : aggregate(out.graph, grid, cancel_);
    at(0.15);
    return is_fewer(out.aggregates.coarse.global_size() * columns_);
  };
  if (aggregates_of(pairwise ? strong_couplings(rows_, A_.range(), block_size_, 0, cancel_)
                             : strong_graph(facts, options_.strength, threshold_)))
    return true;
  // many couplings of a row are all weak beside its diagonal; smoothing is not enough if together they weigh as much
  out.by_diagonals = false;
  return !pairwise && !options_.strength_given && n > most_rows_to_invert && coupling_ratio(rows_, A_.range()) > 0.75 &&
         aggregates_of(strong_graph(facts, Strength::classical, 0.25));
}

template <class T>
NodeGraph HierarchySetUp<T>::strong_graph(RowFacts<T> const& facts, Strength strength, double threshold) const {
  auto const& layout = A_.range();
  if (strength == Strength::symmetric) {
    // none is weak, by more than rounding
    bool const all = block_size_ == 1 && facts.least_coupling > 1.001 * threshold * threshold * facts.largest_diagonal;
    auto graph = all ? pattern_graph(rows_, layout) : strong_couplings(rows_, layout, block_size_, threshold, cancel_);
    graph.symmetric = options_.hermitian;
    return graph;
  }
  auto const strong = strength == Strength::classical ? classical_couplings(rows_, block_size_, threshold, cancel_)
                                                      : evolution_couplings(rows_, layout, block_size_, threshold,
                                                                            spectral_radius(rows_, layout, facts, cancel_), cancel_);
  auto graph = node_graph(rows_, strong, layout, block_size_, cancel_);
  graph.symmetric = options_.hermitian;
  return graph;
}

/// By a dense inverse; by sparse factors, where that would be slower. False: neither is possible.
template <class T>
bool HierarchySetUp<T>::solve_directly(GridLevel& level, Matrix const& given) {
  auto const rows = A_.global_rows();
  bool const automatic = options_.precision == "auto";
  auto dtype = precision().dtype;
  // a single level has nothing to gain from float32
  bool const alone = level_ == 0 && automatic && options_.precision_of_levels.empty();
  if (alone) dtype = with_precision_of(dtype, given.dtype());
  PreconditionerPtr solver;
  if (rows > (level_ == 0 ? rows_of_all_to_factor : rows_to_factor) && rows <= std::max(options_.coarse_size, most_rows_to_factor))
    solver = factors_of(A_, given.dtype(), dtype, automatic, level_ == 0 ? 1e14 : 1e12);
  if (solver) {
    out_.sizes.back().values = name_of(solver->dtype());
    out_.sizes.back().storage = solver->describe();
  } else {
    if (rows > std::max(options_.coarse_size, most_rows_to_invert)) return false;
    auto zeros = rows_;  // where there is rounding: the inverse leaves those directions out
    if (rounding_.any) zeros.val = Buffer<T>(rows_.nnz()), std::copy_n(rows_.val.data(), rows_.nnz(), zeros.val.data());
    rounding_.decouple(zeros, true);
    auto const coarsest = rounding_.any ? matrix_of(zeros, A_.range(), A_.range()) : A_;
    auto const inverse = std::make_shared<DenseInverse>(coarsest, dtype, automatic, origin(given, zeros));
    out_.sizes.back().values = name_of(inverse->stored());
    out_.sizes.back().storage = inverse->storage();
    solver = inverse;
  }
  if (alone) out_.dtype = dtype;
  level.A = std::make_shared<Matrix>(A_.converted(dtype));
  count(solver->memory_bytes());
  level.solver = solver;
  return true;
}

/// radius: of the spectrum of D^-1 A. One that needs the matrix is made when that is there.
template <class T>
void HierarchySetUp<T>::choose_smoother(GridLevel& level, RowFacts<T> const& facts, double radius) {
  if (level_ == 0 && smoother_.is_open()) {
    bool const spai = !options_.hermitian || facts.suits_spai0;
    out_.mixes_signs = facts.mixes_signs && columns_ == 1;
    smoother_ = smoother_.chosen(spai);
    out_.open_degree = !spai && !smoother_.steps_are_given();
  }
  if (!smoother_.needs_matrix()) level.smoother = smoother_of_rows(smoother_, rows_, A_.range(), facts, radius, precision().dtype);
}

template <class T>
void HierarchySetUp<T>::interpolate(Coarsening& found, double radius, Interpolation<T>& out) {
  if (options_.type == AmgType::classical) interpolate_classically(found, out);
  else interpolate_by_aggregates(found, radius, out);
  out.fewer_ranks = FewerRanks::of(out.coarse, options_.coarse_rows_per_rank);
  static int const event = profile::event("AMGTranspose");
  profile::Scope const scope(event);
  out.R = la::transpose(out.P, A_.range(), out.coarse, true, cancel_);
}

/// The components of the coarse unknowns are those that they have as fine ones.
template <class T>
void HierarchySetUp<T>::interpolate_classically(Coarsening& found, Interpolation<T>& out) {
  auto const& s = found.splitting;
  out.coarse = s.coarse;
  out.P = classical_interpolation(s, options_.classical, cancel_);
  if (block_size_ > 1) {
    Buffer<std::int32_t> coarse(out.coarse.local_size());
    for (std::int64_t i = 0, c = 0; i < component_.size(); ++i)
      if (s.number[i + s.A.map.below] >= 0) coarse[c++] = component_[i];
    component_ = std::move(coarse);
  }
  found = {};
}

/// Frees the graph and the aggregates as soon as it can; the near-null space becomes that of the coarse level.
template <class T>
void HierarchySetUp<T>::interpolate_by_aggregates(Coarsening& found, double radius, Interpolation<T>& out) {
  auto P0 = tentative_prolongation(found.graph, found.aggregates, block_size_, columns_, near_null_space_.data(), cancel_);
  auto offsets = found.aggregates.coarse.offsets();
  for (auto& x : offsets) x *= columns_;
  out.coarse = Layout::from_offsets(A_.comm(), std::move(offsets));
  auto const damping = found.aggregates.boxes && !options_.damping_given ? damping_of_boxes : options_.damping;
  // beside a jump of the coefficient a coupling may be weak for one row alone: the other one's smoothing keeps it
  if (damping > 0 && found.by_diagonals && !found.graph.with_self && !found.graph.complete) {
    found.graph = strong_couplings(rows_, A_.range(), block_size_, threshold_, cancel_, true);
    if (found.has_dense_rows) set_dense_rows_apart(found.graph, rows_, A_.range(), block_size_, cancel_);
  }
  bool const smooth = damping > 0;
  if (smooth)
    out.P = smoothed_prolongation(rows_, found.graph, found.aggregates, P0, near_null_space_.data(), block_size_, damping / radius,
                                  out.coarse, cancel_);
  bool const fills_next = smooth && !options_.damping_given && !found.aggregates.boxes && fills(out);
  out_.unsmoothed += fills_next;
  if (!smooth || fills_next) out.P = unsmoothed_prolongation(found.graph, found.aggregates, P0, block_size_, out.coarse, cancel_);
  found = {};
  near_null_space_ = std::move(P0.coarse);
}

/// Whether the coarse level would have more entries than this one, as that of a graph without a geometry has if P is smoothed: nodes within
/// three steps of each other are coupled there, and these are most nodes. Some rows of R A P are made, where rows of P are so long that it
/// may be. Collective.
template <class T>
bool HierarchySetUp<T>::fills(Interpolation<T> const& between) const {
  constexpr std::int64_t long_row = 8, samples = 100;  // in aggregates; in meshes few rows are so long
  constexpr double least = 0.02;                       // a row of k entries fills k^2 of the coarse matrix
  auto const& P = between.P;
  auto const& comm = A_.comm();
  auto const coarse = between.coarse.global_size();
  if (double(coarse) * double(coarse) <= double(A_.nnz())) return false;
  std::int64_t squares = 0;
  for (std::int32_t i = 0; i < P.count; ++i)
    if (auto const k = P.ptr[i + 1] - P.ptr[i]; k >= long_row * columns_) squares += k * k;
  if (double(comm.sum(squares)) < least * double(A_.nnz() * block_size_)) return false;
  static int const event = profile::event("AMGLookAtFill");
  profile::Scope const scope(event);
  auto const each = std::uint64_t(std::max<std::int64_t>(coarse / samples, 1));
  std::vector<char> is_made(std::size_t(P.map.size()));
  for (std::int32_t c = 0; c < P.map.size(); ++c) is_made[std::size_t(c)] = mixed_bits(std::uint64_t(P.map.global(c))) % each == 0;
  la::Rows<T> columns;  // of P, those that are made
  columns.count = P.count;
  columns.map = P.map;
  columns.ptr = Buffer<std::int64_t>(P.count + 1);
  la::append_in_shares<T>(P.count, P.ptr.data(), columns, cancel_, [&](std::int32_t first, std::int32_t last, la::Piece<T>& piece) {
    for (auto i = first; i < last; ++i) {
      auto const before = piece.size;
      piece.make_room(P.ptr[i + 1] - P.ptr[i]);
      for (auto p = P.ptr[i]; p < P.ptr[i + 1]; ++p)
        if (is_made[std::size_t(P.col[p])]) piece.col[piece.size] = P.col[p], piece.val[piece.size++] = P.val[p];
      columns.ptr[i + 1] = piece.size - before;
    }
  });
  auto const R = la::transpose(columns, A_.range(), between.coarse, true, cancel_);
  std::int64_t counts[2] = {std::count(is_made.begin() + P.map.below, is_made.begin() + P.map.below + P.map.own, 1), 0};
  auto const RA = la::sparse_product(R, la::Part::all, la::wide_rows(rows_, A_.range(), A_.range(), R.map), cancel_);
  counts[1] = la::sparse_product(RA, la::Part::all, la::wide_rows(P, A_.range(), between.coarse, RA.map), cancel_).nnz();
  comm.sum(std::span<std::int64_t>(counts));
  return double(counts[1]) / double(std::max<std::int64_t>(counts[0], 1)) * double(coarse) > double(A_.nnz());
}

template <class T>
Rows<T> HierarchySetUp<T>::coarse_operator(Interpolation<T> const& between) {
  static int const event = profile::event("AMGProductRAP");
  profile::Scope const scope(event);
  auto const &fine = A_.range(), &coarse = between.coarse;
  auto next = options_.hermitian ? la::hermitian_triple_product(between.R, rows_, between.P, fine, coarse, cancel_)
                                 : la::triple_product(between.R, rows_, between.P, fine, fine, coarse, cancel_);
  decouple_empty_rows(next);
  auto const node = options_.type == AmgType::aggregation ? columns_ : 1;
  rounding_ = RoundingRows<T>::find(next, between.R, rows_, fine, node, rounding_of_sums_);
  rounding_.decouple(next);
  return next;
}

template <class T>
void HierarchySetUp<T>::store_transfers(Interpolation<T>& between, GridLevel& level) {
  if (!again_) {
    auto const take = [&](Rows<T>& rows, Layout const& range, Layout const& domain) {
      return keep_ ? matrix_of(rows, range, domain) : matrix_of(std::move(rows), range, domain);
    };
    between.P_product = precision().for_products(take(between.P, A_.range(), between.coarse), true);
    between.R_product = precision().for_products(take(between.R, between.coarse, A_.range()));
    if (keep_) new_ones_.push_back(between);
    else between.P = {}, between.R = {};
  }
  level.P = std::make_shared<Matrix>(between.P_product);
  level.R = std::make_shared<Matrix>(between.R_product);
  if (between.fewer_ranks) {
    level.P = between.fewer_ranks->prolongation(level.P);
    level.R = between.fewer_ranks->restriction(level.R);
  }
  auto const coarse = precisions_.at(level_ + 1).dtype;
  level.P = prolongation_from(std::move(level.P), coarse);
  level.R = restriction_into(std::move(level.R), coarse);
  count(between.P_product.memory_bytes() + between.R_product.memory_bytes());
}

template <class T>
void HierarchySetUp<T>::store_operator(GridLevel& level) {
  // products with the adjoint, of a matrix that is not its own, are made of the rows when they are first asked for
  bool const alone = options_.hermitian && (level_ > 0 || A_.dtype() != precision().dtype || precision().bfloat16);
  // this late: what was freed is used again
  auto const product = std::make_shared<Matrix>(alone && level.smoother ? precision().for_products(A_) : precision().of(A_));
  if (!level.smoother) {
    level.smoother = smoother_of_matrix(smoother_, *product, options_.hermitian);
    if (alone) product->keep_product_only();
  }
  out_.sizes.back().storage = std::string(product->storage_name());
  count(product->memory_bytes() + level.smoother->memory_bytes());
  level.A = product;
}

template <class T>
void HierarchySetUp<T>::go_to_coarse_level(Rows<T> next, Interpolation<T>& between) {
  entries_before_ += double(A_.nnz());
  A_ = matrix_of(next, between.coarse, between.coarse);
  if (between.fewer_ranks) {
    move_to(*(keep_ && !again_ ? new_ones_.back() : between).fewer_ranks);  // the one that stays
    next = rows_of<T>(A_);
  }
  if (again_) near_null_space_ = between.near_null_space;
  else if (keep_) new_ones_.back().near_null_space = near_null_space_;
  rows_ = std::move(next);
  block_size_ = columns_;
  threshold_ *= options_.threshold_scale;
}

/// The coarse level, as the products made it.
template <class T>
void HierarchySetUp<T>::move_to(FewerRanks& fewer) {
  static int const event = profile::event("AMGFewerRanks");
  profile::Scope const scope(event);
  A_ = fewer.matrix(A_, keep_);
  auto const rows = fewer.to().local_size();
  if (rounding_.any) {
    Buffer<double> terms(rows);
    fewer.items(rounding_.terms.data(), terms.data(), 1);
    rounding_.terms = std::move(terms);
  }
  if (again_) return;  // nothing is coarsened any more
  if (options_.type == AmgType::aggregation) {
    Buffer<T> modes(rows * columns_);
    fewer.items(near_null_space_.data(), modes.data(), columns_);
    near_null_space_ = std::move(modes);
  } else if (columns_ > 1) {
    Buffer<std::int32_t> component(rows);
    fewer.items(component_.data(), component.data(), 1);
    component_ = std::move(component);
  }
}

/// Bytes of this level.
template <class T>
void HierarchySetUp<T>::count(std::size_t bytes) {
  out_.memory += bytes;
  out_.sizes.back().bytes += bytes;
}

/// Part of this level is done.
template <class T>
void HierarchySetUp<T>::at(double part) {
  cancel_.at(entries_before_ + part * double(A_.nnz()));
}

template class HierarchySetUp<double>;
template class HierarchySetUp<Complex<double>>;

}  // namespace asterism::precond::amg
