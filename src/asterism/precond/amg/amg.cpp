// Algebraic multigrid: smoothed aggregation (Vanek, Mandel, Brezina 1996), or classical (Ruge and Stueben 1987). The set-up sums in an
// order that no number of ranks changes: see docs/explanation/multigrid.md.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <variant>

#include "asterism/base/lazy.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/precond/amg/block_size.hpp"
#include "asterism/precond/amg/hierarchy.hpp"
#include "asterism/precond/amg/smoother_choice.hpp"

namespace asterism::precond {
namespace {

OptionTable const& table() {
  static OptionTable const t = [] {
    OptionTable all = {
        choice_option("pc_amg_type", "aggregation", {"aggregation", "classical"},
                      "smoothed aggregation, or coarse unknowns that are some of the fine ones"),
        choice_option(
            "pc_amg_agg_type", "auto", {"auto", "mis2", "pairwise"},
            "aggregates: around an independent set of distance two (mis2), or of two matchings, which are not smoothed (pairwise); "
            "auto: boxes of 3 nodes in each dimension on regular grids, else mis2"),
        choice_option("pc_amg_strength", "symmetric", {"symmetric", "classical", "evolution"}, "measure of couplings for auto and mis2"),
        real_option("pc_amg_threshold", 0.04,
                    "couplings below this are weak: relative to the diagonals, or else to the strongest of the row (then 0.25)", 0, 1),
        real_option("pc_amg_threshold_scale", 0.5, "factor of the threshold from level to level (1 if that is relative to the row)", 0, 1),
        choice_option("pc_amg_coarsen_type", "pmis", {"pmis", "hmis"}, "coarse unknowns of classical multigrid"),
        choice_option("pc_amg_interp_type", "ext+i", {"ext+i", "direct"}, "interpolation of classical multigrid"),
        integer_option("pc_amg_p_max", 4, "most entries of a row of classical interpolation; 0: all", 0, 1000),
        real_option("pc_amg_trunc_factor", 0, "classical interpolation leaves out weights below this times the largest of the row", 0, 1),
        real_option("pc_amg_max_row_sum", 0.9,
                    "classical: a row whose sum is above this times its diagonal depends on none; 1: no such rule", 0, 1),
        text_option("pc_amg_dtype", "auto",
                    "precision of each level, as in float64,float32,bfloat16: the finest first, the last one for all that follow; bfloat16 "
                    "holds entries in 2 bytes and computes in float32; auto: as -pc_dtype says"),
        integer_option("pc_amg_max_levels", 20, "most levels", 1, 100),
        integer_option("pc_amg_coarse_size", 500, "a level with at most this many rows is solved directly; above 2000 by sparse factors", 1,
                       20000),
        integer_option("pc_amg_coarse_rows_per_rank", 50, "a coarse level with fewer rows per rank moves to fewer ranks; 0: none does", 0,
                       1000000000),
        integer_option("pc_amg_block_size", 0, "rows per node; 0: the matrix's, or found in its pattern", 0, 100),
        choice_option("pc_amg_cycle_type", "v", {"v", "w", "f", "k"},
                      "cycle; f is not symmetric, and k another one for each vector: for -ksp_type fgmres and gcr"),
        flag_option("pc_amg_measure", false, "measure the convergence factors of smoothers and cycles of all levels, for solver.view()"),
        flag_option(
            "pc_amg_reuse_interpolation", true,
            "a new matrix of the same pattern keeps aggregates and prolongation (Solver.update); not with -mg_levels_pc_type ilu or icc"),
        real_option("pc_amg_prolongator_damping", 1.3333333333333333,
                    "omega = this / (spectral radius of D^-1 A), for boxes 1.8 unless it is given; 0: no smoothing", 0, 2),
    };
    all.insert(all.end(), amg::smoother_table().begin(), amg::smoother_table().end());
    return all;
  }();
  return t;
}

struct Range {
  double least, most;
  /// Values that a float32 cycle can hold: nothing over- or underflows, also when squared.
  bool fits_float32() const { return most < 1e15 && least > 1e-15; }
};

/// Of the magnitudes on the diagonal, but zero.
Range range_of_diagonal(Matrix const& A) {
  double most = 0, least = 1e300;
  auto const d = A.diagonal();
  std::mutex mutex;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::Executor executor;
    device::parallel_ranges(executor, d.local_size(), [&, v = d.host<T>().data()](std::int64_t begin, std::int64_t end) {
      double most_here = 0, least_here = 1e300;
      for (auto i = begin; i < end; ++i) {
        double const x = double(magnitude(v[i]));
        most_here = std::max(most_here, x);
        least_here = std::min(least_here, x > 0 ? x : least_here);
      }
      std::lock_guard const lock(mutex);
      most = std::max(most, most_here);
      least = std::min(least, least_here);
    });
  });
  double both[2] = {most, -least};
  A.comm().max(std::span<double>(both));
  return {-both[1], both[0]};
}

/// The same matrix times a number.
Matrix scaled(Matrix const& A, double factor) {
  auto const &diagonal = A.diagonal_block().values, &coupling = A.coupling_block().values;
  device::Array const values[2] = {device::Array(diagonal.bytes()), device::Array(coupling.bytes())};
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto const& [from, to] : {std::pair(&diagonal, &values[0]), std::pair(&coupling, &values[1])})
      for (std::size_t e = 0; e < from->bytes() / sizeof(T); ++e)
        to->template as<T>()[e] = from->template as<T>()[e] * T(real_t<T>(factor));
  });
  return A.with_block_values(A.dtype(), values[0], values[1], device::Memory::host);
}

constexpr double long_solve = 400;  // in passes over the entries: about the time of another set-up

class Amg final : public Preconditioner {
 public:
  Amg(Matrix const& A, amg::AmgOptions options) : Preconditioner(A), options_(std::move(options)) {
    set_up(A, false);
    options_.smoother.keep_options();
  }

  void apply(Vector const& x, Vector& y) const override { apply_cycle(cycle_, x, y); }
  Scalar apply_and_dot(Vector const& x, Vector& y) const override {
    if (whole_nodes_ || scale_ != 1) return Operator::apply_and_dot(x, y);
    profile::Scope const scope(apply_event());
    return cycle_.apply_and_dot(x, y);
  }

  /// The first one keeps the prolongations in the form that set-ups need, which those who never update are spared; from the second
  /// on they are used.
  bool update(Matrix const& A) override {
    if (!options_.reuse || precisions_for(A, range_of_diagonal(A)) != precisions_) return false;
    auto const before = dtype_;
    auto const keeps = [this] { return std::visit([](auto const& kept) { return !kept.empty(); }, kept_); };
    bool const kept = keeps();
    set_up(A, true);
    from_scratch_ = !kept && keeps();
    return dtype_ == before;
  }
  bool updated_from_scratch() const override { return from_scratch_; }

  std::string describe() const override {
    return format("amg ({}{} levels, operator complexity {})", options_.type == amg::AmgType::classical ? "classical, " : "", sizes_.size(),
                  rounded(operator_complexity()));
  }

  std::string report() const override {
    auto const& levels = cycle_.levels();
    bool const classical = options_.type == amg::AmgType::classical;
    std::string out = format("{}, {} cycle, {}\n", describe(), cycle_name_, name_of(dtype_));
    out += format("  grid complexity {}, block size {}{}{}, {}\n", rounded(grid_complexity()), block_size_,
                  found_block_size_ ? " (found in the pattern)" : "", whole_nodes_ ? ", nodes on two ranks moved to one" : "",
                  classical ? "the near-null space is not used" : format("near-null space of {} vector(s)", near_null_columns_));
    if (boxes_ > 0) out += format("  aggregates: boxes of 3 nodes in each dimension of a grid, on {} level(s)\n", boxes_);
    if (tried_evolution_ && options_.strength == amg::Strength::evolution) out += "  strong couplings: by evolution\n";
    if (unsmoothed_ > 0) out += format("  P is not smoothed on {} level(s), since the next one would have more entries\n", unsmoothed_);
    if (choice_.degree > 0) {
      out += "  smoother chosen: a polynomial, since the matrix is no M-matrix; ";
      if (choice_.condition > 0) out += format("condition {} of level {} in a trial", rounded(choice_.condition), choice_.level);
      else out += "a trial did not find it positive definite";
      for (auto const& e : choice_.estimates)
        out += format("{} degree {}: {} iterations, {} passes", &e == choice_.estimates.data() ? ", so that a solve takes" : ",", e.degree,
                      std::ceil(e.iterations), std::round(e.cost));
      out += "\n";
    }
    auto const right = [](std::string s, std::size_t w) { return std::string(w > s.size() ? w - s.size() : 0, ' ') + s; };
    bool const measured = !factors_.empty(), several = space_.comm().size() > 1;
    out += "  level      rows        entries  per row";
    if (several) out += "  ranks";
    if (measured) out += "  smoothing  cycle";
    out += "    values      bytes  storage, smoother\n";
    for (std::size_t l = 0; l < sizes_.size(); ++l) {
      auto const& z = sizes_[l];
      out += right(std::to_string(l), 7) + right(std::to_string(z.rows), 10) + right(std::to_string(z.nnz), 15) +
             right(format("{}", rounded(double(z.nnz) / double(std::max<std::int64_t>(z.rows, 1)))), 9);
      if (several) out += right(std::to_string(z.ranks), 7);
      if (measured) {
        auto const factor = [](double f) { return f > 0 ? format("{}", rounded(f)) : std::string("-"); };
        out += right(factor(factors_[l].first), 11) + right(factor(factors_[l].second), 7);
      }
      out += right(z.values, 10) + right(std::to_string(z.bytes), 11);
      out += "  " + z.storage + (levels[l].solver ? std::string() : ", " + levels[l].smoother->describe()) + "\n";
    }
    return out;
  }
  bool symmetric() const override { return cycle_.symmetric(); }
  bool varies() const override { return cycle_.varies(); }
  std::size_t memory_bytes() const override { return memory_; }
  std::vector<std::pair<std::int64_t, std::int64_t>> levels() const override {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    for (auto const& z : sizes_) out.emplace_back(z.rows, z.nnz);
    return out;
  }

 protected:
  void apply_adjoint(Vector const& x, Vector& y) const override {
    if (self_adjoint_) return apply_cycle(cycle_, x, y);
    apply_cycle(*adjoint_.made_by([&] { return std::make_shared<Cycle const>(cycle_.adjoint()); }), x, y);
  }

 private:
  static int apply_event() {
    static int const event = profile::event("PCApplyAMG");
    return event;
  }

  void apply_cycle(Cycle const& cycle, Vector const& x, Vector& y) const {
    profile::Scope const scope(apply_event());
    if (whole_nodes_) whole_nodes_->apply(x, y, [&](Vector const& b, Vector& z) { cycle.apply(b, z); });
    else cycle.apply(x, y);
    if (scale_ != 1) scale(scale_, y);
  }

  LevelPrecisions precisions_for(Matrix const& A, Range const& diagonal) const {
    if (!options_.precision_of_levels.empty()) return LevelPrecisions(options_.precision_of_levels, A.dtype());
    auto const real = real_of(A.dtype()) == Dtype::float32 ? Dtype::float32
                      : options_.precision == "auto"       ? (diagonal.fits_float32() ? Dtype::float32 : Dtype::float64)
                                                           : dtype_from_name(options_.precision);
    return with_precision_of(A.dtype(), real);
  }

  void set_up(Matrix const& A, bool keep) {
    static int const event = profile::event("PCSetUpAMG");
    profile::Scope const scope(event);
    // a level costs as its entries; those of coarser ones are some 0.3 of the finest's
    Progress progress(format("amg: levels of {} rows", A.global_rows()), 1.3 * double(std::max<std::int64_t>(A.nnz(), 1)));
    comm::Cancellation cancel(A.comm(), progress);
    auto const diagonal = range_of_diagonal(A);
    auto const precisions = precisions_for(A, diagonal);
    choose_block_size(A);
    auto const given = whole_nodes_ ? whole_nodes_->matrix(A, keep) : A;
    // squares of entries are summed: beyond 1e150 they overflow
    auto const most = diagonal.most;
    double const factor = most > 0 && (most > 1e75 || most < 1e-75) ? std::exp2(-std::round(std::log2(most))) : 1;
    auto const build_levels = [&] {
      auto wide = given.converted(with_precision_of(A.dtype(), Dtype::float64));
      if (factor != 1) wide = scaled(wide, factor);
      if (is_complex(wide.dtype())) build<Complex<double>>(std::move(wide), given, factor * most, precisions, keep, cancel);
      else build<double>(std::move(wide), given, factor * most, precisions, keep, cancel);
    };
    build_levels();
    scale_ = factor;
    if (!may_try_evolution()) return;
    auto const before = options_;
    auto const cost = choice_.cost();
    auto const again_by = [&](amg::AmgOptions const& options) {
      options_ = options;
      kept_ = {};
      cycle_ = {};
      build_levels();
    };
    tried_evolution_ = true;
    auto other = options_;
    other.strength = amg::Strength::evolution;
    other.threshold = 0.25;
    other.threshold_scale = 1;
    again_by(other);
    if (!(choice_.cost() < cost)) again_by(before);
  }

  /// Whether couplings of another measure may do better: the entries of such a matrix say little of that, and the trial says that a solve
  /// takes long.
  bool may_try_evolution() const {
    return mixes_signs_ && !tried_evolution_ && choice_.cost() > long_solve && !options_.strength_given &&
           options_.type == amg::AmgType::aggregation && options_.strength == amg::Strength::symmetric &&
           options_.aggregation == amg::AggregationType::automatic;
  }

  void choose_block_size(Matrix const& A) {
    if (block_size_ > 0) return;  // an update's pattern is the old one
    block_size_ = options_.block_size > 0 ? options_.block_size : A.range().block_size();
    if (block_size_ == 1 && options_.block_size == 0) {
      block_size_ = amg::detected_block_size(A);
      found_block_size_ = block_size_ > 1;
    }
    ASTERISM_REQUIRE(A.global_rows() % block_size_ == 0, shape, "amg: block size {} does not divide the {} rows.", block_size_,
                     A.global_rows());
    if (amg::WholeNodes::needed(A.range(), block_size_)) whole_nodes_.emplace(A.range(), block_size_);
  }

  static double rounded(double x) { return std::round(x * 100) / 100; }
  double operator_complexity() const {
    double s = 0;
    for (auto const& z : sizes_) s += double(z.nnz);
    return sizes_[0].nnz ? s / double(sizes_[0].nnz) : 1;
  }
  double grid_complexity() const {
    double s = 0;
    for (auto const& z : sizes_) s += double(z.rows);
    return sizes_[0].rows ? s / double(sizes_[0].rows) : 1;
  }

  template <class T>
  void build(Matrix A, Matrix const& given, double largest_diagonal, LevelPrecisions const& precisions, bool keep,
             comm::Cancellation& cancel) {
    using Kept = amg::Interpolations<T>;
    if (!std::holds_alternative<Kept>(kept_)) kept_ = Kept();
    bool const again = !std::get<Kept>(kept_).empty();
    auto made = amg::HierarchySetUp<T>(options_, block_size_, precisions, std::get<Kept>(kept_), keep, cancel)
                    .run(std::move(A), given, largest_diagonal);
    // nothing is changed before: an error leaves the levels as they were
    precisions_ = precisions;
    dtype_ = made.dtype;
    near_null_columns_ = made.columns;
    if (!again) boxes_ = made.boxes, unsmoothed_ = made.unsmoothed;
    sizes_ = std::move(made.sizes);
    memory_ = made.memory + (whole_nodes_ ? whole_nodes_->memory_bytes() : 0);
    choice_ = {};
    mixes_signs_ = made.mixes_signs;
    if (made.open_degree && !made.levels[0].solver) {
      static int const event = profile::event("AMGChooseSmoother");
      profile::Scope const scope(event);
      std::vector<double> entries;
      for (auto const& z : sizes_) entries.push_back(double(z.nnz));
      auto const count = [&](bool adds) {
        for (std::size_t l = 0; l < sizes_.size(); ++l) {
          auto const bytes = made.levels[l].smoother ? made.levels[l].smoother->memory_bytes() : 0;
          for (auto* const sum : {&sizes_[l].bytes, &memory_}) *sum = adds ? *sum + bytes : *sum - bytes;
        }
      };
      count(false);
      choice_ = amg::choose_degree(made.levels, entries, options_.cycle, made.mixes_signs ? &given : nullptr);
      count(true);
    }
    cycle_ = Cycle(std::move(made.levels), options_.cycle, options_.hermitian);
    adjoint_ = {};
    measure();
    warn_of_ranks(given.comm());
  }

  void measure() {
    factors_.clear();
    if (!options_.measure) return;
    auto const& levels = cycle_.levels();
    for (std::size_t l = 0; l < levels.size(); ++l)
      if (levels[l].solver) factors_.emplace_back(0, 0);
      else factors_.emplace_back(amg::smoothing_factor(levels[l]), amg::convergence_factor(levels, l, options_.cycle, options_.hermitian));
  }
  void warn_of_ranks(comm::Communicator const& comm) const {
    auto const& levels = cycle_.levels();
    if (!reproducible() || comm.rank() != 0 || levels[0].solver || !levels[0].smoother->by_ranks()) return;
    log::warning(
        "-reproducible: the smoother ({}) is made of each rank's own rows. Those of spai0, jacobi, chebyshev and color_sor are not.",
        levels[0].smoother->describe());
  }

  amg::AmgOptions options_;
  Cycle cycle_;
  std::string cycle_name_ = options_.cycle == CycleType::v   ? "V"
                            : options_.cycle == CycleType::w ? "W"
                            : options_.cycle == CycleType::f ? "F"
                                                             : "K";
  amg::DegreeChoice choice_;
  std::vector<std::pair<double, double>> factors_;      // of each level's smoother, and of the cycle from there
  mutable Lazy<std::shared_ptr<Cycle const>> adjoint_;  // made when asked for
  std::variant<amg::Interpolations<double>, amg::Interpolations<Complex<double>>> kept_;
  bool from_scratch_ = false;  // the last update found nothing kept
  std::vector<amg::LevelSize> sizes_;
  LevelPrecisions precisions_;
  std::int64_t block_size_ = 0, near_null_columns_ = 1;
  std::size_t boxes_ = 0, unsmoothed_ = 0;
  double scale_ = 1;  // the levels are of this times the matrix
  bool found_block_size_ = false;
  bool mixes_signs_ = false, tried_evolution_ = false;
  std::optional<amg::WholeNodes> whole_nodes_;
  std::size_t memory_ = 0;
};

}  // namespace

namespace {

/// Options of the other families.
void refuse_without_effect(OptionReader const& r, bool classical, bool pairwise) {
  auto const refuse = [&](std::string_view type, std::string_view value, std::initializer_list<char const*> others) {
    for (auto const* other : others)
      ASTERISM_REQUIRE_ALIKE(!r.given(other), option, "-{} has no effect with -{} {}. Leave out one of the two.", other, type, value);
  };
  if (classical) {
    refuse("pc_amg_type", "classical", {"pc_amg_agg_type", "pc_amg_strength", "pc_amg_prolongator_damping"});
  } else {
    refuse("pc_amg_type", "aggregation",
           {"pc_amg_coarsen_type", "pc_amg_interp_type", "pc_amg_p_max", "pc_amg_trunc_factor", "pc_amg_max_row_sum"});
    if (pairwise) refuse("pc_amg_agg_type", "pairwise", {"pc_amg_strength"});
  }
}

}  // namespace

PreconditionerEntry amg_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(table());
            amg::AmgOptions o;
            o.type = r.text("pc_amg_type") == "classical" ? amg::AmgType::classical : amg::AmgType::aggregation;
            auto const strength = r.text("pc_amg_strength");
            o.strength = strength == "classical"   ? amg::Strength::classical
                         : strength == "evolution" ? amg::Strength::evolution
                                                   : amg::Strength::symmetric;
            o.strength_given = r.given("pc_amg_strength") || r.given("pc_amg_threshold");
            auto const aggregation = r.text("pc_amg_agg_type");
            o.aggregation = aggregation == "pairwise" ? amg::AggregationType::pairwise
                            : aggregation == "mis2"   ? amg::AggregationType::mis2
                                                      : amg::AggregationType::automatic;
            bool const classical = o.type == amg::AmgType::classical, pairwise = o.aggregation == amg::AggregationType::pairwise;
            refuse_without_effect(r, classical, pairwise);
            bool const by_row = classical || pairwise || o.strength != amg::Strength::symmetric;
            o.threshold = r.real("pc_amg_threshold");
            if (!r.given("pc_amg_threshold") && by_row) o.threshold = 0.25;
            o.threshold_scale = r.real("pc_amg_threshold_scale");
            if (!r.given("pc_amg_threshold_scale") && by_row) o.threshold_scale = 1;
            o.classical = {r.text("pc_amg_coarsen_type") == "hmis" ? amg::CoarseningType::hmis : amg::CoarseningType::pmis,
                           r.text("pc_amg_interp_type") == "direct" ? amg::InterpolationType::direct : amg::InterpolationType::extended,
                           r.real("pc_amg_max_row_sum"), r.real("pc_amg_trunc_factor"), r.integer("pc_amg_p_max")};
            o.max_levels = r.integer("pc_amg_max_levels");
            o.coarse_size = r.integer("pc_amg_coarse_size");
            o.coarse_rows_per_rank = r.integer("pc_amg_coarse_rows_per_rank");
            o.block_size = r.integer("pc_amg_block_size");
            o.cycle = cycle_type(r.text("pc_amg_cycle_type"));
            o.measure = r.flag("pc_amg_measure");
            o.damping = r.real("pc_amg_prolongator_damping");
            o.damping_given = r.given("pc_amg_prolongator_damping");
            if (!o.damping_given && pairwise) o.damping = 0;
            o.smoother = amg::smoother_options(nest, r);
            auto const* precision = nest.config.options->find(nest.config.prefix + "pc_dtype");
            o.precision = precision ? precision->value : "auto";
            auto const levels = r.text("pc_amg_dtype");
            if (levels != "auto") {
              ASTERISM_REQUIRE_ALIKE(!precision || precision->value == "auto", option,
                                     "-pc_amg_dtype {} has no effect with -pc_dtype {}. Leave out one of the two.", levels,
                                     precision->value);
              o.precision_of_levels = levels;
            }
            o.reuse = r.flag("pc_amg_reuse_interpolation");
            o.hermitian = nest.hermitian;
            return std::make_shared<Amg>(A, std::move(o));
          },
          &table(), "algebraic multigrid: smoothed aggregation, or classical"};
}

}  // namespace asterism::precond
