#include <algorithm>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/multifrontal/panel.kernels.hpp"
#include "asterism/direct/multifrontal/subtrees.hpp"

namespace asterism::direct::kernel {
namespace {

template <class T>
void conjugate(std::int64_t n, T* x) {
  if constexpr (is_complex_v<T>)
    for (std::int64_t i = 0; i < n; ++i) x[i] = conj(x[i]);
}

template <class T>
class Sweeps {
 public:
  Sweeps(NumericFactors const& f, std::int64_t k, T* x) : f_(f), k_(k), x_(x) {
    std::int32_t largest = 0;
    for (auto const& front : f.fronts) largest = std::max(largest, front.pivots + std::max(front.below(), front.beside()));
    work_ = at(largest) * std::size_t(std::min(k, most_columns));
  }

  /// x = L^-1 x, or U^-T x: from the first front to the last. A subtree adds up what it has for the unknowns above it; these sums are
  /// added in one order.
  void down(bool of_u, bool unit) {
    std::vector<std::vector<T>> above(f_.subtrees.size());
    auto const& beyond = of_u ? f_.columns_beyond : f_.rows_beyond;
    each_task(f_.subtrees.size(), [&] {
      return [&, work = std::vector<T>(work_), copy = std::vector<T>(at(f_.size) * std::size_t(k_))](std::size_t t) mutable {
        auto const [first, last] = f_.subtrees[t];
        T* const x = copy.data();
        auto const begin = f_.fronts[at(first)].first * k_, end = (f_.fronts[at(last)].first + f_.fronts[at(last)].pivots) * k_;
        std::copy(x_ + begin, x_ + end, x + begin);
        for (auto const i : beyond[t]) std::fill_n(x + i * k_, k_, T(0));
        for (auto s = first; s <= last; ++s) one(f_.fronts[at(s)], of_u, of_u, unit, x, work.data());
        std::copy(x + begin, x + end, x_ + begin);
        above[t].reserve(beyond[t].size() * std::size_t(k_));
        for (auto const i : beyond[t]) above[t].insert(above[t].end(), x + i * k_, x + (i + 1) * k_);
      };
    });
    for (std::size_t t = 0; t < above.size(); ++t) {
      auto from = above[t].begin();
      for (auto const i : beyond[t])
        for (std::int64_t c = 0; c < k_; ++c) x_[i * k_ + c] += *from++;
    }
    std::vector<T> work(work_);
    for (auto const s : f_.rest) one(f_.fronts[at(s)], of_u, of_u, unit, x_, work.data());
  }
  /// x = U^-1 x, or L^-T x: from the last front to the first.
  void up(bool of_u, bool unit) {
    std::vector<T> work(work_);
    for (auto s = f_.rest.rbegin(); s != f_.rest.rend(); ++s) one(f_.fronts[at(*s)], of_u, !of_u, unit, x_, work.data());
    each_task(f_.subtrees.size(), [&] {
      return [&, mine = std::vector<T>(work_)](std::size_t t) mutable {
        auto const [first, last] = f_.subtrees[t];
        for (auto s = last; s >= first; --s) one(f_.fronts[at(s)], of_u, !of_u, unit, x_, mine.data());
      };
    });
  }

 private:
  void one(FactoredFront const& f, bool of_u, bool transposed, bool unit, T* x, T* work) const {
    if (f.pivots == 0) return;
    FrontPanel<T> front{f.first, f.pivots, f.below(), f.panel.as<T>(), f.size, nullptr, f.rows.data()};
    if (of_u) front.below = f.beside(), front.right = f.right.as<T>(), front.list = f.columns.data();
    solve_front(front, of_u, transposed, unit, k_, x, work);
  }
  NumericFactors const& f_;
  std::int64_t k_;
  T* x_;
  std::size_t work_;  // numbers that a front needs
};

}  // namespace

template <class T>
void solve(NumericFactors const& f, bool transposed, std::int64_t k, T* x) {
  if (k == 0 || f.row_order.empty()) return;
  Sweeps<T> sweeps(f, k, x);
  auto const n = std::int64_t(f.row_order.size()) * k;
  if (f.kind == FactorKind::lu) {
    if (!transposed) {
      sweeps.down(false, true);
      sweeps.up(true, false);
    } else {
      sweeps.down(true, false);
      sweeps.up(false, true);
    }
    return;
  }
  // B^T = conj(B), and L^-H y = conj(L^-T conj(y))
  if (transposed) conjugate(n, x);
  bool const unit = f.kind == FactorKind::hermitian;
  sweeps.down(false, unit);
  if (unit) solve_pivots<T>(f, k, x);
  conjugate(n, x);
  sweeps.up(false, unit);
  if (!transposed) conjugate(n, x);
}

template <class T>
void solve_down(NumericFactors const& f, bool of_u, std::int64_t k, T* x) {
  Sweeps<T>(f, k, x).down(of_u, f.kind != FactorKind::cholesky && !of_u);
}
template <class T>
void solve_pivots(NumericFactors const& f, std::int64_t k, T* x) {
  if (f.kind == FactorKind::hermitian)
    divide_rows(BlockDiagonal<T>{std::int64_t(f.row_order.size()), f.diagonal.as<T>(), f.lower.as<T>()}, k, x);
}
template <class T>
void solve_up(NumericFactors const& f, bool of_u, std::int64_t k, T* x) {
  Sweeps<T>(f, k, x).up(of_u, f.kind != FactorKind::cholesky && !of_u);
}

#define ASTERISM_INSTANTIATE(T)                                               \
  template void solve<T>(NumericFactors const&, bool, std::int64_t, T*);      \
  template void solve_down<T>(NumericFactors const&, bool, std::int64_t, T*); \
  template void solve_pivots<T>(NumericFactors const&, std::int64_t, T*);     \
  template void solve_up<T>(NumericFactors const&, bool, std::int64_t, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
