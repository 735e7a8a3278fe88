// Smoothed-aggregation multigrid: Vanek, Mandel, Brezina (1996). The set-up sums in an order that no
// number of ranks changes: see docs/explanation/multigrid.md.
#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "asterism/base/lazy.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/precond/amg/block_size.hpp"
#include "asterism/precond/amg/galerkin.hpp"
#include "asterism/precond/amg/prolongation.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/multigrid/cycle.hpp"

namespace asterism::precond {
namespace {

using amg::Rows;

OptionTable const& table() {
  static OptionTable const t = {
      real_option("pc_amg_threshold", 0.04, "couplings below this (relative to the diagonals) are weak; halved on each coarser level", 0,
                  1),
      real_option("pc_amg_threshold_scale", 0.5, "factor of the threshold from level to level", 0, 1),
      integer_option("pc_amg_max_levels", 20, "most levels", 1, 100),
      integer_option("pc_amg_coarse_size", 500, "a level with at most this many rows is solved directly", 1, 20000),
      integer_option("pc_amg_block_size", 0, "rows per node; 0: the matrix's, or found in its pattern", 0, 100),
      choice_option("pc_amg_cycle_type", "v", {"v", "w"}, "cycle"),
      flag_option("pc_amg_reuse_interpolation", true, "a new matrix of the same pattern keeps aggregates and prolongation (Solver.update)"),
      real_option("pc_amg_prolongator_damping", 1.3333333333333333, "omega = this / (spectral radius of D^-1 A); 0: no smoothing", 0, 2),
  };
  return t;
}

OptionTable const& level_table() {
  static OptionTable const t = {
      choice_option("ksp_type", "richardson", {"richardson", "chebyshev"}, "smoother of the levels"),
      integer_option("ksp_max_it", 1, "sweeps before and after, or the degree of the polynomial", 1, 100),
      choice_option("pc_type", "spai0", {"spai0", "jacobi"}, "what the smoother multiplies residuals with"),
  };
  return t;
}

struct AmgOptions {
  double threshold, threshold_scale, damping;
  std::int64_t max_levels, coarse_size, block_size;
  int visits;
  SmootherKind smoother;
  std::string weights;
  std::int64_t steps;
  std::string precision;  // "auto": as fits the values
  bool reuse, hermitian;
};

struct Range {
  double least, most;
  /// Values that a float32 cycle can hold: nothing over- or underflows, also when squared.
  bool fits_float32() const { return most < 1e15 && least > 1e-15; }
};

/// Of the magnitudes on the diagonal, but zero.
Range range_of_diagonal(Matrix const& A) {
  double most = 0, least = 1e300;
  auto const d = A.diagonal();
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto const& v : d.host<T>()) {
      double const x = double(magnitude(v));
      most = std::max(most, x);
      if (x > 0) least = std::min(least, x);
    }
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

class Amg final : public Preconditioner {
 public:
  Amg(Matrix const& A, AmgOptions options) : Preconditioner(A), options_(std::move(options)) { set_up(A, false); }

  void apply(Vector const& x, Vector& y) const override { apply_cycle(cycle_, x, y); }

  /// The first one keeps the prolongations in the form that set-ups need, which those who never update are spared; from the second
  /// on they are used.
  bool update(Matrix const& A) override {
    if (!options_.reuse || dtype_for(A) != levels_dtype_) return false;
    auto const before = dtype_;
    sizes_.clear();
    memory_ = 0;
    set_up(A, true);
    return dtype_ == before;
  }

  std::string describe() const override {
    return format("amg ({} levels, operator complexity {})", sizes_.size(), rounded(operator_complexity()));
  }

  std::string report() const override {
    std::string out = format("{}, {} cycle, smoother {}, {}\n", describe(), cycle_name_, smoother_name_, name_of(dtype_));
    out += format("  grid complexity {}, block size {}{}{}, near-null space of {} vector(s)\n", rounded(grid_complexity()), block_size_,
                  found_block_size_ ? " (found in the pattern)" : "", whole_nodes_ ? ", nodes on two ranks moved to one" : "", modes_);
    out += "  level      rows        entries  per row  storage\n";
    for (std::size_t l = 0; l < sizes_.size(); ++l) {
      auto const row = [](std::string s, std::size_t w) { return std::string(w > s.size() ? w - s.size() : 0, ' ') + s; };
      out += row(std::to_string(l), 7) + row(std::to_string(sizes_[l].rows), 10) + row(std::to_string(sizes_[l].nnz), 15) +
             row(format("{}", rounded(double(sizes_[l].nnz) / double(std::max<std::int64_t>(sizes_[l].rows, 1)))), 9) + "  " +
             sizes_[l].storage + "\n";
    }
    return out;
  }
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
  void apply_cycle(Cycle const& cycle, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplyAMG");
    profile::Scope const scope(event);
    if (whole_nodes_) whole_nodes_->apply(x, y, [&](Vector const& b, Vector& z) { cycle.apply(b, z); });
    else cycle.apply(x, y);
    if (scale_ != 1) scale(scale_, y);
  }

  struct Size {
    std::int64_t rows, nnz;
    std::string storage;
  };
  /// What a level is made of that values do not change.
  template <class T>
  struct Interpolation {
    Layout coarse;
    Rows<T> P, R;
    Matrix P_product, R_product;
  };
  template <class T>
  using Interpolations = std::vector<Interpolation<T>>;

  Dtype dtype_for(Matrix const& A) const {
    auto const real = real_of(A.dtype()) == Dtype::float32 ? Dtype::float32
                      : options_.precision == "auto"       ? (range_of_diagonal(A).fits_float32() ? Dtype::float32 : Dtype::float64)
                                                           : dtype_from_name(options_.precision);
    return with_precision_of(A.dtype(), real);
  }

  void set_up(Matrix const& A, bool keep) {
    static int const event = profile::event("PCSetUpAMG");
    profile::Scope const scope(event);
    dtype_ = levels_dtype_ = dtype_for(A);
    choose_block_size(A);
    auto const given = whole_nodes_ ? whole_nodes_->matrix(A) : A;
    auto wide = given.converted(with_precision_of(A.dtype(), Dtype::float64));
    // squares of entries are summed: beyond 1e150 they overflow
    auto const most = range_of_diagonal(A).most;
    scale_ = most > 0 && (most > 1e75 || most < 1e-75) ? std::exp2(-std::round(std::log2(most))) : 1;
    if (scale_ != 1) wide = scaled(wide, scale_);
    if (is_complex(wide.dtype())) build<Complex<double>>(std::move(wide), given, keep);
    else build<double>(std::move(wide), given, keep);
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

  /// SPAI-0: w_i = conj(a_ii) / sum_j |a_ij|^2, the diagonal closest to the inverse (Broeker et al. 2001); or damped Jacobi.
  template <class T>
  Vector weights(Rows<T> const& A, Layout const& layout, std::string const& kind, double radius, bool damp) const {
    Vector w(layout, dtype_);
    device::Executor executor;
    amg::Buffer<T> v(std::max(A.count, 1));
    double const omega = damp ? 4.0 / 3 / radius : 1;
    device::parallel_for(executor, A.count, [&](std::int64_t i) {
      T d(0);
      real_t<T> sum = 0;
      for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) {
        if (A.col[p] == i + A.map.below) d = A.val[p];
        sum += abs2(A.val[p]);
      }
      if (kind == "spai0") v[i] = sum > 0 ? conj(d) * T(real_t<T>(1) / sum) : T(0);
      else v[i] = d == T(0) ? T(0) : T(real_t<T>(omega)) / d;
    });
    auto const full = Vector::wrap(layout, dtype_v<T>, 1, v.array());
    copy(full, w);
    return w;
  }

  template <class T>
  void build(Matrix A, Matrix const& given, bool keep) {
    auto const& o = options_;
    auto const comm = A.comm();  // A becomes the next level
    bool const automatic = o.precision == "auto";
    std::vector<GridLevel> levels;
    if (!std::holds_alternative<Interpolations<T>>(kept_)) kept_ = Interpolations<T>();
    auto& kept = std::get<Interpolations<T>>(kept_);
    bool const again = !kept.empty();
    auto bs = block_size_;
    // near-null space: what the space knows of it, or the constants of each component
    std::int64_t m = bs;
    amg::Buffer<T> B;
    if (auto const modes = la::near_null_space_of(given.range(), dtype_v<T>)) {
      m = modes.columns();
      B = amg::Buffer<T>(modes.data());
    } else {
      B = amg::Buffer<T>(A.range().local_size() * m, T(0));
      for (std::int64_t i = 0; i < A.range().local_size(); ++i) B[i * m + i % bs] = T(1);
    }
    modes_ = m;
    cycle_name_ = o.visits == 2 ? "W" : "V";
    smoother_name_ = format("{} x {} with {}", o.steps, o.smoother == SmootherKind::chebyshev ? "chebyshev" : "richardson", o.weights);

    auto rows = amg::rows_of<T>(A);
    double threshold = o.threshold;
    // a level costs as its entries; those of coarser ones are some 0.3 of the finest's
    Progress progress(format("amg: levels of {} rows", A.global_rows()), 1.3 * double(std::max<std::int64_t>(A.nnz(), 1)));
    double entries_before = 0;
    for (std::int64_t l = 0;; ++l) {
      GridLevel level;
      auto const layout = A.range();
      auto const n = A.global_rows();
      auto const stage = [&, nnz = double(A.nnz())](double part) { progress.at(entries_before + part * nnz); };
      sizes_.push_back({n, A.nnz(), ""});
      stage(0);
      bool last = n <= o.coarse_size || l + 1 >= o.max_levels;
      amg::Aggregates aggregates;
      amg::NodeGraph graph;
      if (again) {
        last = std::size_t(l) == kept.size();
      } else if (!last) {
        graph = amg::strong_couplings(rows, layout, bs, threshold);
        stage(0.1);
        aggregates = amg::aggregate(graph);
        stage(0.15);
        // no progress: all couplings are weak, or every node stands alone
        auto const coarse_rows = aggregates.coarse.global_size() * m;
        last = coarse_rows == 0 || double(coarse_rows) > 0.9 * double(n);
      }
      if (last && n <= std::max<std::int64_t>(o.coarse_size, 4000)) {
        // a single level has nothing to gain from float32
        if (l == 0 && automatic) dtype_ = with_precision_of(dtype_, given.dtype());
        level.A = std::make_shared<Matrix>(A.converted(dtype_));
        auto const inverse = std::make_shared<DenseInverse>(A, dtype_, automatic);
        memory_ += inverse->memory_bytes();
        sizes_.back().storage = inverse->storage();
        level.solver = inverse;
        levels.push_back(std::move(level));
        break;
      }
      double const radius = amg::spectral_radius(rows, layout);
      bool const polynomial = o.smoother == SmootherKind::chebyshev;
      auto w = weights(rows, layout, polynomial ? "jacobi" : o.weights, radius, !polynomial);
      if (polynomial) level.smoother = {o.smoother, o.steps, {}, {std::move(w), radius / 8, radius, o.steps}};
      else level.smoother = {o.smoother, o.steps, std::move(w), {}};
      if (!polynomial && o.weights == "spai0") {
        // unlike damped Jacobi, SPAI-0 may diverge: W A must have its spectrum below 2. It reaches no further
        // than max(w_i a_ii) times that of D^-1 A.
        double reach = 0;
        auto const diagonal = A.diagonal();
        auto const* d = diagonal.data().template as<T>();
        with_dtype(dtype_, [&](auto tag) {
          using S = typename decltype(tag)::type;
          auto const w = level.smoother.weights.template host<S>();
          for (std::size_t i = 0; i < w.size(); ++i) reach = std::max(reach, double(magnitude(w[i])) * double(magnitude(d[i])));
        });
        reach = comm.max(reach) * radius;
        if (reach > 1.9) scale(1.9 / reach, level.smoother.weights);
      }
      if (last) {  // too large to factor, too decoupled to coarsen: the smoother alone
        auto const product = std::make_shared<Matrix>(A.converted(dtype_));
        sizes_.back().storage = std::string(product->storage_name());
        level.A = product;
        levels.push_back(std::move(level));
        break;
      }
      stage(0.25);
      Interpolation<T> made;
      auto& between = again ? kept[std::size_t(l)] : made;
      if (!again) {
        auto P0 = amg::tentative_prolongation(graph, aggregates, bs, m, B.data());
        auto offsets = aggregates.coarse.offsets();
        for (auto& x : offsets) x *= m;
        between.coarse = Layout::from_offsets(comm, std::move(offsets));
        between.P = amg::smoothed_prolongation(rows, graph, aggregates, P0, bs, o.damping / radius, between.coarse);
        graph = {};
        aggregates = {};
        B = std::move(P0.coarse);
        static int const transposing = profile::event("AMGTranspose");
        profile::Scope const transpose_scope(transposing);
        between.R = amg::transpose(between.P, layout, between.coarse);
      }
      stage(0.5);
      auto const coarse = between.coarse;

      static int const rap = profile::event("AMGProductRAP");
      Rows<T> next;
      {
        profile::Scope const product_scope(rap);
        next = amg::galerkin_product(between.R, rows, amg::with_ghost_rows(between.P, layout, coarse, rows.map), layout, coarse);
        // a column of P that was dropped (dependent near-null vectors) leaves an empty row: decouple it
        for (std::int32_t i = 0; i < next.count; ++i)
          for (auto p = next.ptr[i]; p < next.ptr[i + 1]; ++p)
            if (next.col[p] == i + next.map.below && next.val[p] == T(0)) next.val[p] = T(1);
      }
      stage(0.85);
      static int const store = profile::event("AMGStore");
      {
        profile::Scope const store_scope(store);
        if (!again) {
          between.P_product = amg::matrix_of(between.P, layout, coarse).converted(dtype_);
          between.R_product = amg::matrix_of(between.R, coarse, layout).converted(dtype_);
          if (keep) {  // where nothing was converted the products' storage is the rows themselves
            kept.push_back(between);
          } else {
            between.P = {};
            between.R = {};
          }
          between.P_product.keep_product_only(true);
          between.R_product.keep_product_only();
        }
        level.P = std::make_shared<Matrix>(between.P_product);
        level.R = std::make_shared<Matrix>(between.R_product);
        auto const product = std::make_shared<Matrix>(A.converted(dtype_));  // this late: what was freed is used again
        // products with the adjoint, of a matrix that is not its own, are made of the rows when they are first asked for
        if (o.hermitian && (l > 0 || A.dtype() != dtype_)) product->keep_product_only();
        sizes_.back().storage = std::string(product->storage_name());
        memory_ += between.P_product.memory_bytes() + between.R_product.memory_bytes() + product->memory_bytes();
        level.A = product;
        A = amg::matrix_of(next, coarse, coarse);
      }
      rows = comm.size() == 1 ? std::move(next) : amg::rows_of<T>(A);
      entries_before += double(sizes_.back().nnz);
      bs = m;
      threshold *= o.threshold_scale;
      levels.push_back(std::move(level));
    }
    for (auto const& k : kept) memory_ += std::size_t(k.P.nnz() + k.R.nnz()) * (sizeof(T) + sizeof(std::int32_t));
    cycle_ = Cycle(std::move(levels), o.visits);
    adjoint_ = {};
  }

  AmgOptions options_;
  Cycle cycle_;
  mutable Lazy<std::shared_ptr<Cycle const>> adjoint_;  // made when asked for
  std::variant<Interpolations<double>, Interpolations<Complex<double>>> kept_;
  std::vector<Size> sizes_;
  Dtype levels_dtype_ = Dtype::float64;  // dtype_, unless there is one level
  std::int64_t block_size_ = 0, modes_ = 1;
  double scale_ = 1;  // the levels are of this times the matrix
  bool found_block_size_ = false;
  std::optional<amg::WholeNodes> whole_nodes_;
  std::size_t memory_ = 0;
  std::string cycle_name_, smoother_name_;
};

}  // namespace

PreconditionerEntry amg_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(table());
            AmgOptions o;
            o.threshold = r.real("pc_amg_threshold");
            o.threshold_scale = r.real("pc_amg_threshold_scale");
            o.max_levels = r.integer("pc_amg_max_levels");
            o.coarse_size = r.integer("pc_amg_coarse_size");
            o.block_size = r.integer("pc_amg_block_size");
            o.visits = r.text("pc_amg_cycle_type") == "w" ? 2 : 1;
            o.damping = r.real("pc_amg_prolongator_damping");
            auto s = nest.config.nested("mg_levels_").reader(level_table());
            o.smoother = s.text("ksp_type") == "chebyshev" ? SmootherKind::chebyshev : SmootherKind::richardson;
            o.steps = s.integer("ksp_max_it");
            if (!s.given("ksp_max_it") && o.smoother == SmootherKind::chebyshev) o.steps = 2;
            o.weights = s.text("pc_type");
            auto const* precision = nest.config.options->find(nest.config.prefix + "pc_dtype");
            o.precision = precision ? precision->value : "auto";
            o.reuse = r.flag("pc_amg_reuse_interpolation");
            o.hermitian = nest.hermitian;
            return std::make_shared<Amg>(A, std::move(o));
          },
          &table(), "smoothed-aggregation multigrid"};
}

}  // namespace asterism::precond
