// Additive Schwarz on each rank's own rows and some around them: Dryja and Widlund (1987); restricted, Cai and Sarkis (1999).
#include <algorithm>
#include <optional>

#include "asterism/base/profile.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/la/submatrix.hpp"
#include "asterism/precond/each_rank.hpp"

namespace asterism::precond {
namespace {

OptionTable const& asm_table() {
  static OptionTable const t = {
      integer_option("pc_asm_overlap", 1, "how far a rank's rows reach into its neighbours', in steps along the entries", 0, 100),
      choice_option("pc_asm_type", "restrict", {"restrict", "basic"},
                    "restrict: a rank's corrections of its own rows only, fewer iterations; basic: all are summed, symmetric if A is"),
  };
  return t;
}

std::vector<std::int64_t> own_indices(Layout const& layout) {
  std::vector<std::int64_t> out(std::size_t(layout.local_size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = layout.begin() + std::int64_t(i);
  return out;
}

/// Ascending: mine and those within so many steps.
std::vector<std::int64_t> with_overlap(Matrix const& A, std::int64_t steps) {
  auto const own = own_indices(A.range());
  auto reached = own;
  for (std::int64_t s = 0; s < steps; ++s) {
    auto more = s == 0 ? A.ghosts() : la::Submatrix(A, reached, own).matrix().to_rows().columns;
    more.insert(more.end(), reached.begin(), reached.end());
    std::sort(more.begin(), more.end());
    more.erase(std::unique(more.begin(), more.end()), more.end());
    reached = std::move(more);
  }
  return reached;
}

class AdditiveSchwarz final : public EachRank {
 public:
  AdditiveSchwarz(Nest const& nest, Matrix const& A, std::int64_t overlap, bool restricted)
      : EachRank(A),
        overlap_(overlap),
        restricted_(restricted),
        indices_(with_overlap(A, overlap)),
        first_own_(std::lower_bound(indices_.begin(), indices_.end(), A.range().begin()) - indices_.begin()),
        rows_(A, indices_, own_indices(A.range())),
        forest_(comm::StarForest::from_layout(A.range(), indices_)) {
    forest_.set_name("overlap of a preconditioner");
    make(nest, local_block(), local_rows(A));
  }

  bool update(Matrix const& A) override {
    rows_.update(A);
    return update_inner(local_block(), local_rows(A));
  }

  // The inner one, and a message from and, for `basic`, one to every neighbour.
  void apply(Vector const& x, Vector& y) const override {
    run(x, y, true, !restricted_, [&](Vector const& b, Vector& z) { inner().apply(b, z); });
  }
  // What restricts the corrections of M restricts the residuals of its transpose.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    run(x, y, !restricted_, true, [&](Vector const& b, Vector& z) { inner().apply_transpose(b, z, conjugate); });
  }
  std::string describe() const override {
    return format("{}additive schwarz, overlap {}, sub: {}", restricted_ ? "restricted " : "", overlap_, inner().describe());
  }
  std::size_t memory_bytes() const override { return EachRank::memory_bytes() + rows_.matrix().memory_bytes(); }
  bool symmetric() const override { return !restricted_ && EachRank::symmetric(); }

 private:
  /// My rows with overlap, and of these the columns among them.
  la::Csr local_block() const {
    auto const rows = rows_.matrix().to_rows();
    auto const n = std::int32_t(indices_.size());
    std::vector<std::int32_t> place(rows.columns.size());
    std::int64_t inside = 0;
    for (std::size_t e = 0; e < place.size(); ++e) {
      auto const at = std::lower_bound(indices_.begin(), indices_.end(), rows.columns[e]);
      bool const in = at != indices_.end() && *at == rows.columns[e];
      place[e] = in ? std::int32_t(at - indices_.begin()) : -1;
      inside += in;
    }
    la::Csr out(rows.dtype, n, n, inside);
    with_dtype(rows.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const ptr = out.row_offsets();
      auto* col = out.columns.as<std::int32_t>();
      auto* val = out.values.as<T>();
      auto const* from = rows.values.as<T>();
      ptr[0] = 0;
      std::int64_t at = 0;
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        for (auto p = std::size_t(rows.offsets[i]); p < std::size_t(rows.offsets[i + 1]); ++p)
          if (place[p] >= 0) col[at] = place[p], val[at++] = from[p];
        ptr[i + 1] = at;
      }
    });
    return out;
  }

  /// Of the block, with the near-null space of those rows; and with nodes, where steps along the entries have reached whole ones.
  Space local_rows(Matrix const& A) const {
    auto const& all = A.range();
    auto out = rows_of_block(std::int64_t(indices_.size()), [all, indices = indices_](std::int64_t place) {
      auto const row = indices[std::size_t(place)];
      return all.owns(row) ? all.own_entry_name(row - all.begin()) : format("row {}", row);
    });
    auto const size = std::size_t(all.block_size());
    bool whole = indices_.size() % size == 0;
    for (std::size_t i = 0; whole && i < indices_.size(); ++i)
      whole = i % size == 0 ? std::size_t(indices_[i]) % size == 0 : indices_[i] == indices_[i - 1] + 1;
    if (whole) out = out.with_block_size(std::int64_t(size));
    auto const modes = la::near_null_space_of(all, A.dtype());
    if (!modes) return out;
    Vector mine(static_cast<comm::Layout const&>(out), modes.dtype(), modes.columns());
    with_dtype(modes.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      forest_.bcast(modes.host<T>().data(), mine.host<T>().data(), modes.columns());
    });
    return out.with_near_null_space(std::move(mine));
  }

  /// gathers: the neighbours' residuals too, else zeros there; sums: the corrections of their rows go to them.
  template <class Inner>
  void run(Vector const& x, Vector& y, bool gathers, bool sums, Inner const& solve) const {
    static int const event = profile::event("PCApplyASM");
    profile::Scope const scope(event);
    auto const k = x.columns();
    auto const& queue = y.queue();
    Vector b(inner().range(), dtype_, k, queue), z = b.like();
    auto const own = std::size_t(x.local_size() * k), before = std::size_t(first_own_ * k), all = std::size_t(b.local_size() * k);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_without_form(
          queue,
          [forest = forest_, k, own, before, all, gathers](device::Executor&, std::byte*, T const* from, T* to) {
            if (gathers) return forest.bcast(from, to, k);
            std::fill_n(to, all, T(0));
            std::copy_n(from, own, to + before);
          },
          device::update<std::byte>(space_.comm().order_token()), device::read<T>(x.data()), device::write<T>(b.data()));
      solve(b, z);
      device::submit_without_form(
          queue,
          [forest = forest_, k, own, before, sums](device::Executor&, std::byte*, T const* from, T* to) {
            if (!sums) {
              std::copy_n(from + before, own, to);
              return;
            }
            std::fill_n(to, own, T(0));
            forest.reduce(from, to, comm::ReduceOp::sum, k);
          },
          device::update<std::byte>(space_.comm().order_token()), device::read<T>(z.data()), device::write<T>(y.data()));
    });
  }

  std::int64_t overlap_;
  bool restricted_;
  std::vector<std::int64_t> indices_;  // of the block
  std::int64_t first_own_;
  la::Submatrix rows_;
  comm::StarForest forest_;
};

}  // namespace

PreconditionerEntry additive_schwarz_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(asm_table());
            auto const overlap = r.integer("pc_asm_overlap");
            return std::make_shared<AdditiveSchwarz>(nest, A, overlap, r.text("pc_asm_type") == "restrict");
          },
          &asm_table(),
          "additive Schwarz: each rank's rows and some around them, by -sub_pc_type (default ilu), or solved with it by -sub_ksp_type",
          true};
}

}  // namespace asterism::precond
