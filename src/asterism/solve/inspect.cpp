// What can be seen of a matrix in one pass over its entries and three products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"
#include "asterism/solve/scaling.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {

namespace {

/// Of my rows.
bool has_entry(Matrix const& A, std::int64_t row) {
  if (A.half() && A.half()->absolute_row_sums()[std::size_t(row)] > 0) return true;
  return with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const in = [row](la::Csr const& a) {
      auto const ptr = a.row_offsets();
      auto const values = a.template entries<T>().subspan(std::size_t(ptr[std::size_t(row)]),
                                                          std::size_t(ptr[std::size_t(row) + 1] - ptr[std::size_t(row)]));
      return std::any_of(values.begin(), values.end(), [](T v) { return v != T(0); });
    };
    return (!A.half() && in(A.diagonal_block())) || in(A.coupling_block());
  });
}

/// unscaled: A before it was scaled, or none.
void look_at_entries(Matrix const& A, Matrix const* unscaled, Inspection& found) {
  auto const& comm = A.comm();
  bool const is_half = A.half() != nullptr;  // all of its entries are finite, since they have mirror images
  auto const& O = A.coupling_block();
  auto const first_row = A.range().begin();
  std::int64_t zero_diagonal = 0, not_positive = 0, not_negative = 0;
  double least = std::numeric_limits<double>::infinity();
  comm::agree(comm, [&] {
    auto const sums = is_half ? A.half()->absolute_row_sums() : std::vector<double>();
    with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const diagonals = is_half ? A.diagonal() : Vector();
      auto const* const known = is_half ? diagonals.host<T>().data() : nullptr;
      struct View {
        std::span<std::int64_t> ptr;
        std::span<std::int32_t> col;
        std::span<T> val;
      };
      auto const view_of = [](la::Csr const& a) { return View{a.row_offsets(), a.column_indices(), a.template entries<T>()}; };
      View const views[2] = {is_half ? View() : view_of(A.diagonal_block()), view_of(O)};
      auto const used = std::span(views).subspan(is_half ? 1 : 0);
      // true: each row has an entry in the first block, and no entry is zero, NaN or infinite. False: each row must be looked at
      auto const are_good = [&](std::size_t begin, std::size_t end) {
        bool good = !is_half;
        for (auto r = begin; good && r < end; ++r) good = views[0].ptr[r] < views[0].ptr[r + 1];
        for (auto const& view : used)
          good = good && la::kernel::are_finite_and_not_zero(view.ptr[end] - view.ptr[begin], view.val.data() + view.ptr[begin]);
        return good;
      };
      auto first_not_finite = A.range().local_size(), first_empty = first_not_finite;
      std::mutex mutex;
      device::Executor executor;
      device::parallel_ranges(executor, A.range().local_size(), [&](std::int64_t begin, std::int64_t end) {
        double least_here = std::numeric_limits<double>::infinity();
        std::int64_t zeros = 0, others[2] = {0, 0}, bad[2] = {end, end};  // the first rows of either kind, from the last one on
        auto const look = [&](std::int64_t i) {
          auto const r = std::size_t(i);
          bool any = is_half && sums[r] > 0;
          real_t<T> not_finite = 0;  // 0 times NaN or infinity is NaN: no branch for each entry
          for (auto const& view : used)
            for (auto p = view.ptr[r], last = view.ptr[r + 1]; p < last; ++p) {
              T const v = view.val[std::size_t(p)];
              not_finite += real(v) * 0 + imag(v) * 0;
              any = any | !(v == T(0));
            }
          if (not_finite != 0 || not_finite != not_finite) bad[0] = i;
          if (!any) bad[1] = i;
        };
        la::EntryPlace place;
        for (auto last = end; last > begin;) {
          auto const first = std::max(begin, last - 256);
          if (!are_good(std::size_t(first), std::size_t(last)))
            for (auto i = last; i-- > first;) look(i);
          for (auto r = std::size_t(first); r < std::size_t(last); ++r) {
            auto const at = is_half ? -1 : place(views[0].col.data(), views[0].ptr[r], views[0].ptr[r + 1], std::int32_t(r));
            T const diagonal = known ? known[r] : at >= 0 ? views[0].val[std::size_t(at)] : T(0);
            zeros += diagonal == T(0);
            others[0] += !(double(real(diagonal)) > 0);
            others[1] += !(double(real(diagonal)) < 0);
            least_here = std::min(least_here, double(magnitude(diagonal)));
          }
          last = first;
        }
        std::lock_guard const lock(mutex);
        zero_diagonal += zeros;
        least = std::min(least, least_here);
        not_positive += others[0];
        not_negative += others[1];
        if (bad[0] < end) first_not_finite = std::min(first_not_finite, bad[0]);
        if (bad[1] < end) first_empty = std::min(first_empty, bad[1]);
      });
      auto const rows = A.range().local_size();
      ASTERISM_REQUIRE(first_not_finite == rows || first_empty < first_not_finite, value,
                       "the matrix has an entry that is NaN or infinite in row {}. Look for a division by zero or an overflow where "
                       "it is assembled.",
                       first_row + first_not_finite);
      ASTERISM_REQUIRE(first_empty == rows || !unscaled || !has_entry(*unscaled, first_empty), value,
                       "the entries of row {} of the matrix are too small to be seen in {} beside the largest one, {}. Scale rows and "
                       "columns to entries of like size.",
                       first_row + first_empty, name_of(A.dtype()), found.size);
      ASTERISM_REQUIRE(first_empty == rows, value,
                       "row {} of the matrix is empty (all entries zero): the matrix is singular. Remove the row and its unknown, or put "
                       "1 on its diagonal.",
                       first_row + first_empty);
    });
  });
  std::int64_t counts[3] = {zero_diagonal, not_positive, not_negative};
  comm.sum(std::span<std::int64_t>(counts));
  found.least_diagonal = -comm.max(-least);
  found.entries = A.nnz();
  found.zero_diagonals = counts[0];
  found.positive_diagonal = counts[1] == 0;
  found.negative_diagonal = counts[2] == 0 && A.global_rows() > 0;
}

/// x_i / max_j |a_ij| in every row. Each row has an entry.
void divide_by_largest_of_rows(Matrix const& A, Vector& x, Inspection& found) {
  auto const all = std::make_shared<std::vector<double>>(static_cast<std::size_t>(A.range().local_size()));
  auto& sizes = *all;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const &D = A.diagonal_block(), &O = A.coupling_block();
    auto const values = x.host<T>();
    device::Executor executor;
    device::parallel_ranges(executor, A.range().local_size(), [&](std::int64_t begin, std::int64_t end) {
      for (auto r = std::size_t(begin); r < std::size_t(end); ++r) {
        real_t<T> largest = 0;
        for (auto const* block : {&D, &O}) {
          auto const ptr = block->row_offsets();
          auto const entries = block->template entries<T>();
          for (auto p = ptr[r]; p < ptr[r + 1]; ++p) largest = std::max(largest, magnitude(entries[std::size_t(p)]));
        }
        values[r] = values[r] / T(largest);
        sizes[r] = double(largest);
      }
    });
  });
  auto const largest = A.comm().max(sizes.empty() ? 0.0 : std::ranges::max(sizes));
  auto const small = A.comm().sum(std::ranges::count_if(sizes, [&](double size) { return small_row * size <= largest; }));
  if (2 * small >= A.global_rows()) found.row_sizes = all;
}

void count_dominant_rows(Matrix const& A, Inspection& found) {
  auto const rows = A.global_rows();
  auto const& space = A.range();
  if (rows == 0) return;
  if (space.near_null_space() || (space.block_size() > 1 && space.coordinates())) return;  // amg has what it needs
  auto const B = A.half() ? A.general() : A;
  std::int64_t counts[2] = {0, 0};
  with_dtype(B.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const &D = B.diagonal_block(), &O = B.coupling_block();
    auto const own = D.template entries<T>(), coupled = O.template entries<T>();
    auto const own_at = D.row_offsets(), coupled_at = O.row_offsets();
    auto const columns = D.column_indices();
    auto const size = [](T v) { return std::abs(double(real(v))) + std::abs(double(imag(v))); };
    auto const before = B.range().begin() - B.domain().begin();
    std::mutex mutex;
    device::Executor executor;
    device::parallel_ranges(executor, B.range().local_size(), [&](std::int64_t begin, std::int64_t end) {
      std::int64_t here[2] = {0, 0};
      for (auto r = std::size_t(begin); r < std::size_t(end); ++r) {
        double diagonal = 0, all = 0;
        for (auto p = std::size_t(own_at[r]); p < std::size_t(own_at[r + 1]); ++p) {
          all += size(own[p]);
          diagonal += columns[p] == std::int64_t(r) + before ? size(own[p]) : 0;
        }
        for (auto p = std::size_t(coupled_at[r]); p < std::size_t(coupled_at[r + 1]); ++p) all += size(coupled[p]);
        double const with_rounding = diagonal * (1 + 1e-6), others = all - diagonal;
        here[0] += with_rounding >= others;
        here[1] += 2 * with_rounding >= others;
      }
      std::lock_guard const lock(mutex);
      for (int k = 0; k < 2; ++k) counts[k] += here[k];
    });
  });
  A.comm().sum(std::span<std::int64_t>(counts));
  found.dominant = double(counts[0]) / double(rows);
  found.half_dominant = double(counts[1]) / double(rows);
}

/// Of an operator without entries that knows it.
void look_at_diagonal(Operator const& A, Inspection& found) {
  auto d = A.diagonal();
  std::int64_t counts[2] = {0, 0};
  auto const& padding = d.space().padding();
  with_dtype(d.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const* const values = d.host<T>().data();
    auto const count = [values](std::int64_t begin, std::int64_t end, std::int64_t* to) {
      for (auto i = begin; i < end; ++i) {
        to[0] += !(double(real(values[i])) > 0);
        to[1] += !(double(real(values[i])) < 0);
      }
    };
    device::Executor executor;
    device::parallel_sum_blocks<2>(executor, d.local_size(), 2, counts,
                                   [&](std::int64_t begin, std::int64_t end, std::int64_t, std::int64_t* to) { count(begin, end, to); });
    std::int64_t of_padding[2] = {0, 0};
    for (auto const& [first, length] : padding) count(first, first + length, of_padding);
    for (int k = 0; k < 2; ++k) counts[k] -= of_padding[k];
  });
  A.range().comm().sum(std::span<std::int64_t>(counts));
  found.positive_diagonal = counts[0] == 0;
  found.negative_diagonal = counts[1] == 0 && A.range().global_size() > 0;
}

}  // namespace

Inspection inspect(Operator const& A, Matrix const* unscaled, double largest) {
  static int const event = profile::event("SolverInspect");
  profile::Scope const scope(event);
  Inspection found;
  auto const* const matrix = A.matrix();
  if (matrix && largest == 0) largest = matrix->largest_entry();
  found.size = largest;
  if (matrix) look_at_entries(*matrix, unscaled, found);
  Vector x(A.range(), A.dtype()), y = x.like(), u = x.like(), v = x.like();
  fill_hashed(x, 1);
  fill_hashed(y, 2);
  // Entries (i, j) and (j, i) are compared beside the lesser of the largest ones of their rows: those of another row, as large as they may
  // be, hide nothing
  if (matrix && !matrix->half() && (unscaled || !(found.least_diagonal >= largest / 16))) divide_by_largest_of_rows(*matrix, x, found);
  A.apply(x, u);
  A.apply(y, v);
  if (!matrix) {  // its size is seen by its products alone
    Vector const* const products[] = {&u, &v};
    auto const sizes = look_at_entries(products);
    for (auto const& of : sizes)
      ASTERISM_REQUIRE_ALIKE(of.not_finite == 0, value,
                             "the product of {} with a vector of numbers in (-1, 1) has {} entries that are NaN or infinite; the first is "
                             "in {}.",
                             A.describe(), of.not_finite, A.range().entry_name(of.first_not_finite));
    found.size = std::max(sizes[0].largest[0], sizes[1].largest[0]);
    if (int const e = scaling_exponent(found.size, A.dtype()))
      for (auto* const product : {&u, &v}) scale_by_powers(*product, std::span(&e, 1));
  }
  std::pair<Vector const*, Vector const*> const pairs[] = {{&y, &u}, {&x, &v}, {&y, &y}, {&u, &u}, {&x, &u}, {&x, &x}};
  auto const d = dots(pairs);
  double const size = std::sqrt(d[2].real() * d[3].real()), own_size = std::sqrt(d[5].real() * d[3].real());
  found.asymmetry = size > 0 ? std::abs(d[0].value() - std::conj(d[1].value())) / size : 0;
  // a skew part that has one sign everywhere, as damping of waves, is seen best by x^H A x, which is real if A is Hermitian
  if (own_size > 0) found.asymmetry = std::max(found.asymmetry, std::abs(d[4].value().imag()) / own_size);
  // rounding in the two products is far below. An unsymmetric entry far smaller than the largest one of its row is not seen:
  // solve_transpose, which solves A then, verifies its answer with the transpose
  found.hermitian = found.asymmetry <= 1e3 * epsilon_of(A.dtype()) && std::isfinite(size) && std::isfinite(own_size);
  if (matrix && (!found.hermitian || matrix->global_rows() <= rows_for_direct_first)) count_dominant_rows(*matrix, found);
  if (!matrix && found.hermitian && A.eigenvalue_bound()) look_at_diagonal(A, found);
  return found;
}

}  // namespace asterism::solve
