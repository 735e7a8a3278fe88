// Additive Schwarz on each rank's own rows and some around them: Dryja and Widlund (1987); restricted, Cai and Sarkis (1999).
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"
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

/// Ascending: rows of other ranks within so many steps of mine. Collective.
std::vector<std::int64_t> rows_around(Matrix const& A, std::int64_t steps) {
  if (steps == 0) return {};
  auto const own = own_indices(A.range());
  auto around = A.ghosts(), last = around;
  for (std::int64_t s = 1; s < steps; ++s) {
    la::Submatrix const rows(A, last, own);
    auto const& reached = rows.matrix().ghosts();  // the columns of theirs that are not mine
    std::vector<std::int64_t> all;
    last.clear();
    std::set_difference(reached.begin(), reached.end(), around.begin(), around.end(), std::back_inserter(last));
    std::merge(around.begin(), around.end(), last.begin(), last.end(), std::back_inserter(all));
    around = std::move(all);
  }
  return around;
}

/// My rows and those around them, ascending.
struct Overlap {
  Overlap(Matrix const& A, std::int64_t steps) : around(rows_around(A, steps)), indices(own_indices(A.range())) {
    below = std::lower_bound(around.begin(), around.end(), A.range().begin()) - around.begin();
    indices.insert(indices.begin(), around.begin(), around.begin() + below);
    indices.insert(indices.end(), around.begin() + below, around.end());
  }
  std::vector<std::int64_t> around, indices;
  std::ptrdiff_t below = 0;  // how many of those around come before mine
};

/// The block of these rows and columns.
class OverlapBlock {
 public:
  /// outside: the rows around; its own columns, as those of A, are mine.
  OverlapBlock(Overlap const& overlap, Matrix const& A, Matrix const& outside) : overlap_(overlap) {
    auto const n = std::int32_t(overlap.indices.size());
    Part const mine(A, overlap.indices), others(outside, overlap.indices);
    csr = la::Csr(A.dtype(), n, n, mine.entries + others.entries);
    std::fill_n(csr.offsets.as<std::int64_t>(), std::size_t(n) + 1, std::int64_t(0));
    auto const below = overlap.below, rows = std::ptrdiff_t(overlap.around.size());
    append(others, 0, below);
    append(mine, 0, A.range().local_size());
    append(others, below, rows);
  }
  la::Csr csr;

 private:
  /// Rows of a matrix, with the places of its ghosts in the block, -1 where it does not have them.
  struct Part {
    Part(Matrix const& B, std::span<std::int64_t const> indices) : B(B), entries(B.local_nnz()) {
      for (auto const ghost : B.ghosts()) {
        auto const at = std::lower_bound(indices.begin(), indices.end(), ghost);
        places.push_back(at != indices.end() && *at == ghost ? std::int32_t(at - indices.begin()) : -1);
      }
      for (auto const c : B.coupling_block().column_indices()) entries -= places[std::size_t(c)] < 0;
    }
    Matrix const& B;
    std::vector<std::int32_t> places;
    std::int64_t entries;
  };

  void append(Part const& part, std::int64_t first, std::int64_t last) {
    auto const &d = part.B.diagonal_block(), &o = part.B.coupling_block();
    auto const dp = d.row_offsets(), op = o.row_offsets();
    auto const dc = d.column_indices(), oc = o.column_indices();
    auto* const ptr = csr.offsets.as<std::int64_t>() + filled_;
    auto const* const places = part.places.data();
    for (auto row = first; row < last; ++row) {
      auto const r = std::size_t(row);
      auto const all = op[r + 1] - op[r];
      auto const outside = std::count_if(oc.begin() + op[r], oc.begin() + op[r + 1], [=](auto c) { return places[c] < 0; });
      ptr[row - first + 1] = ptr[row - first] + dp[r + 1] - dp[r] + all - outside;
    }
    filled_ += last - first;
    auto const below = std::int32_t(overlap_.below);
    device::Executor executor;
    with_dtype(csr.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const dv = d.entries<T>(), ov = o.entries<T>();
      auto* const columns = csr.columns.as<std::int32_t>();
      auto* const values = csr.values.as<T>();
      device::parallel_for(executor, last - first, [=](std::int64_t row) {
        auto const r = std::size_t(first + row);
        auto at = ptr[row];
        auto q = op[r];
        auto const take_ghosts = [&](std::int32_t end) {
          for (; q < op[r + 1] && places[oc[std::size_t(q)]] < end; ++q)
            if (auto const c = places[oc[std::size_t(q)]]; c >= 0) columns[at] = c, values[at++] = ov[std::size_t(q)];
        };
        take_ghosts(below);
        for (auto p = dp[r]; p < dp[r + 1]; ++p) columns[at] = below + dc[std::size_t(p)], values[at++] = dv[std::size_t(p)];
        take_ghosts(std::numeric_limits<std::int32_t>::max());
      });
    });
  }

  Overlap const& overlap_;
  std::int64_t filled_ = 0;  // rows
};

class AdditiveSchwarz final : public EachRank {
 public:
  AdditiveSchwarz(Nest const& nest, Matrix const& A, std::int64_t overlap, bool restricted)
      : EachRank(A),
        overlap_(overlap),
        restricted_(restricted),
        rows_(A, overlap),
        forest_(comm::StarForest::from_layout(A.range(), rows_.indices)) {
    forest_.set_name("overlap of a preconditioner");
    if (A.comm().max(std::int64_t(rows_.around.size())) > 0) outside_.emplace(A, rows_.around, own_indices(A.range()));
    make(nest, local_block(A), local_rows(A));
  }

  bool update(Matrix const& A) override {
    if (outside_) outside_->update(A);
    return update_inner(local_block(A), local_rows(A));
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
  std::size_t memory_bytes() const override { return EachRank::memory_bytes() + (outside_ ? outside_->memory_bytes() : 0); }
  bool symmetric() const override { return !restricted_ && EachRank::symmetric(); }

 private:
  la::Csr local_block(Matrix const& A) const { return outside_ ? OverlapBlock(rows_, A, outside_->matrix()).csr : A.diagonal_block(); }

  /// Of the block, with the near-null space of those rows; and with nodes, where steps along the entries have reached whole ones.
  Space local_rows(Matrix const& A) const {
    auto const& all = A.range();
    auto out = rows_of_block(std::int64_t(rows_.indices.size()), [all, indices = rows_.indices](std::int64_t place) {
      auto const row = indices[std::size_t(place)];
      return all.owns(row) ? all.own_entry_name(row - all.begin()) : format("row {}", row);
    });
    auto const size = std::size_t(all.block_size());
    bool whole = rows_.indices.size() % size == 0;
    for (std::size_t i = 0; whole && i < rows_.indices.size(); ++i)
      whole = i % size == 0 ? std::size_t(rows_.indices[i]) % size == 0 : rows_.indices[i] == rows_.indices[i - 1] + 1;
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
    auto const own = std::size_t(x.local_size() * k), before = std::size_t(rows_.below * k), all = std::size_t(b.local_size() * k);
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
  Overlap rows_;
  std::optional<la::Submatrix> outside_;  // the rows around, if any rank has any
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
