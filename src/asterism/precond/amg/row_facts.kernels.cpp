#include "asterism/precond/amg/row_facts.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::precond::amg {

using i32 = std::int32_t;
using i64 = std::int64_t;

namespace {

/// a_ii^2 / sum_j |a_ij|^2: the weight of SPAI-0 relative to Jacobi's. Poisson has 0.8 and more. In single rows of a Poisson problem, 0.19
/// took 18 iterations and 0.06 took 26, where the polynomial, at twice the cost of an iteration, takes 11.
constexpr double least_weight_of_spai0 = 0.1;

/// Whether row i is the one before, moved by one column.
template <class T>
bool is_moved(la::Rows<T> const& A, i64 i) {
  auto const* const ptr = A.ptr.data();
  auto const n = ptr[i + 1] - ptr[i];
  if (ptr[i] - ptr[i - 1] != n) return false;
  auto const* const col = A.col.data() + ptr[i];
  auto const* const val = A.val.data() + ptr[i];
  bool same = true;
  for (i64 l = 0; l < n; ++l) same &= (col[l] == col[l - n] + 1) & (val[l] == val[l - n]);
  return same;
}

}  // namespace

template <class T>
RowFacts<T> look_at_rows(la::Rows<T> const& A, la::Layout const& layout, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGLook");
  profile::Scope const scope(event, double(A.nnz()) * (sizeof(T) + sizeof(i32)));
  RowFacts<T> out;
  out.diagonal = la::Buffer<T>(std::max(A.count, 1));
  out.squares = la::Buffer<real_t<T>>(std::max(A.count, 1));
  double most[3] = {0, 0, 0}, least = std::numeric_limits<double>::infinity(), least_weight = 1;
  i64 counts[2] = {0, 0};  // of rows that are unlike those of an M-matrix, and that mix signs
  std::mutex mutex;
  device::Executor executor;
  device::parallel_ranges(executor, A.count, [&, below = A.map.below](i64 begin, i64 end) {
    auto const* const ap = A.ptr.data();
    auto const* const ac = A.col.data();
    auto const* const av = A.val.data();
    auto* const diagonal = out.diagonal.data();
    auto* const squares = out.squares.data();
    double row_sum = 0, largest = 0, coupling = std::numeric_limits<double>::infinity(), weight = 1;
    i64 rows_unlike = 0, rows_mixed = 0;
    i64 longest = 0;
    bool is_unlike = false, is_mixed = false;
    la::EntryPlace place;
    for (i64 i = begin; i < end; ++i) {
      if (la::is_look(i) && cancel.requested()) return;
      if (i > begin && is_moved(A, i)) {
        diagonal[i] = diagonal[i - 1];
        squares[i] = squares[i - 1];
        rows_unlike += is_unlike;
        rows_mixed += is_mixed;
        continue;
      }
      i64 const at = place(ac, ap[i], ap[i + 1], i32(i) + below);
      T const d = at >= 0 ? av[at] : T(0);
      longest = std::max(longest, ap[i + 1] - ap[i]);
      real_t<T> sum = 0;
      double alike = 0, other = 0, square = std::numeric_limits<double>::infinity();
      for (auto p = ap[i]; p < ap[i + 1]; ++p) {
        bool const beside = p != at;
        double const size = beside ? double(magnitude(av[p])) : 0;
        bool const is_alike = double(real(conj(d) * av[p])) > 0;  // at an angle of less than a right one to the diagonal
        alike += is_alike ? size : 0;
        other += is_alike ? 0 : size;
        auto const size2 = abs2(av[p]);
        sum += size2;
        square = std::min(square, beside ? double(size2) : square);
      }
      diagonal[i] = d;
      squares[i] = sum;
      double const size = double(magnitude(d));
      row_sum = std::max(row_sum, size > 0 ? (alike + other + size) / size : 0);
      largest = std::max(largest, size);
      coupling = std::min(coupling, size > 0 ? square / size : 0);
      weight = std::min(weight, size > 0 ? size * size / double(sum) : 1);
      is_unlike = alike > 0.1 * other;
      is_mixed = alike > 0.25 * other && std::abs(size + alike - other) <= 0.1 * size;
      rows_unlike += is_unlike;
      rows_mixed += is_mixed;
    }
    std::lock_guard const lock(mutex);
    most[0] = std::max(most[0], row_sum);
    most[1] = std::max(most[1], largest);
    most[2] = std::max(most[2], double(longest));
    least = std::min(least, coupling);
    least_weight = std::min(least_weight, weight);
    counts[0] += rows_unlike;
    counts[1] += rows_mixed;
  });
  cancel.throw_if_requested();
  double all[5] = {most[0], most[1], -least, most[2], -least_weight};
  layout.comm().max(std::span<double>(all));
  out.row_sum = all[0];
  out.largest_diagonal = all[1];
  out.least_coupling = -all[2];
  out.longest_row = i64(all[3]);
  layout.comm().sum(std::span<i64>(counts));
  bool const near_m_matrix = double(counts[0]) <= 0.02 * double(layout.global_size());
  out.mixes_signs = double(counts[1]) >= 0.8 * double(layout.global_size());
  out.suits_spai0 = near_m_matrix && -all[4] >= least_weight_of_spai0;
  return out;
}

template RowFacts<double> look_at_rows(la::Rows<double> const&, la::Layout const&, comm::Cancellation&);
template RowFacts<Complex<double>> look_at_rows(la::Rows<Complex<double>> const&, la::Layout const&, comm::Cancellation&);

}  // namespace asterism::precond::amg
