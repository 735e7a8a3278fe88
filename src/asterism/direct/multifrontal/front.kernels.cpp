#include "asterism/direct/multifrontal/front.kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"

namespace asterism::direct::kernel {
namespace {

constexpr int panel_width = 64;      // of LU and Cholesky
constexpr int hermitian_width = 32;  // of L D L^H
constexpr int block_columns = 192;   // of a product, by one thread

/// f(first, count) for blocks of columns, which are the same for any number of threads; by several threads if there is enough to do.
template <class F>
void each_block(int columns, double flops, F const& f) {
  auto const blocks = (columns + block_columns - 1) / block_columns;
  device::Executor executor;
  device::parallel_ranges(
      executor, blocks,
      [&](std::int64_t begin, std::int64_t end) {
        for (auto b = begin; b < end; ++b) {
          int const first = int(b) * block_columns;
          f(first, std::min(block_columns, columns - first));
        }
      },
      flops < 1e6 ? blocks : 1);
}

/// C -= A op(B), all of it.
template <class T>
void subtract(char trans_b, int m, int n, int k, T const* A, int lda, T const* B, int ldb, T* C, int ldc) {
  if (m == 0 || n == 0 || k == 0) return;
  if (double(m) * n * k < 512) {
    for (int j = 0; j < n; ++j)
      for (int p = 0; p < k; ++p) {
        T const b =
            trans_b == 'N' ? B[std::size_t(j) * std::size_t(ldb) + std::size_t(p)] : B[std::size_t(p) * std::size_t(ldb) + std::size_t(j)];
        T const by = trans_b == 'C' ? conj(b) : b;
        for (int i = 0; i < m; ++i)
          C[std::size_t(j) * std::size_t(ldc) + std::size_t(i)] -= A[std::size_t(p) * std::size_t(lda) + std::size_t(i)] * by;
      }
    return;
  }
  each_block(n, 2.0 * m * n * k, [&](int j, int count) {
    auto const* const b = trans_b == 'N' ? B + std::size_t(j) * std::size_t(ldb) : B + j;
    lapack::subtract_product(trans_b, m, count, k, A, lda, b, ldb, C + std::size_t(j) * std::size_t(ldc), ldc);
  });
}

/// The lower triangle of C -= A B^H, and what else is in blocks on the diagonal.
template <class T>
void subtract_lower(int n, int k, T const* A, int lda, T const* B, int ldb, T* C, int ldc) {
  if (n == 0 || k == 0) return;
  if (n <= 8) return subtract('C', n, n, k, A, lda, B, ldb, C, ldc);
  each_block(n, double(n) * n * k, [&](int j, int count) {
    lapack::subtract_product('C', n - j, count, k, A + j, lda, B + j, ldb, C + std::size_t(j) * std::size_t(ldc + 1), ldc);
  });
}

/// X = X op(T)^-1 for m rows.
template <class T>
void solve_right(char uplo, char trans, char diag, int m, int n, T const* t, int ldt, T* x, int ldx) {
  if (m == 0 || n == 0) return;
  each_block(m, double(m) * n * n, [&](int i, int count) { lapack::trsm('R', uplo, trans, diag, count, n, t, ldt, x + i, ldx); });
}

template <class T>
class LuFront {
  using R = real_t<T>;

 public:
  LuFront(Front<T> const& f, Pivoting const& p)
      : f_(f),
        m_(f.size),
        nf_(f.summed),
        below_(f.size - f.summed),
        complete_(f.complete || below_ == 0),
        threshold_(R(p.threshold)),
        tiny_(R(p.tiny)),
        replacement_(R(p.replacement)) {}

  Eliminated run() {
    int k = 0, candidates = nf_, begun = 0;
    for (;;) {
      if (k == candidates) {  // those that were left once more, if there are new pivots
        if (candidates == nf_ || k == begun) break;
        candidates = nf_;
        begun = k;
        continue;
      }
      int const width = std::min(panel_width, candidates - k), first = k;
      if (width < 8 || !at_once(k, width)) k = one_by_one(k, width, candidates);
      else k += width;
      update_summed(first, k);
    }
    out_.pivots = k;
    finish(k);
    return out_;
  }

 private:
  T* at(int i, int j) const { return f_.panel + std::size_t(j) * std::size_t(m_) + std::size_t(i); }
  T* right(int j) const { return f_.right + std::size_t(j) * std::size_t(below_); }

  /// A panel by getrf; false, and nothing is changed, if a pivot is too small beside rows that are not summed.
  bool at_once(int k, int width) {
    int const height = m_ - k;
    backup_.resize(std::size_t(height) * std::size_t(width));
    for (int j = 0; j < width; ++j) std::copy_n(at(k, k + j), height, backup_.data() + std::size_t(j) * std::size_t(height));
    pivots_.resize(std::size_t(width));
    bool good = lapack::getrf(nf_ - k, width, at(k, k), m_, pivots_.data()) == 0;
    for (int j = 0; good && j < width; ++j) good = magnitude(*at(k + j, k + j)) > tiny_;
    if (good && below_ > 0) {
      solve_right('U', 'N', 'N', below_, width, at(k, k), m_, at(nf_, k), m_);
      R const most = 1 / threshold_;
      for (int j = 0; good && j < width; ++j) {
        R largest = 0;
        for (int i = nf_; i < m_; ++i) largest = std::max(largest, abs2(*at(i, k + j)));
        good = complete_ || largest <= most * most;  // true for NaN too: std::max keeps its first argument, so look at the sum of all
        R sum = 0;
        for (int i = nf_; i < m_; ++i) sum += abs2(*at(i, k + j));
        good = good && std::isfinite(sum);
      }
    }
    if (!good) {
      for (int j = 0; j < width; ++j) std::copy_n(backup_.data() + std::size_t(j) * std::size_t(height), height, at(k, k + j));
      return false;
    }
    for (int j = 0; j < width; ++j)
      if (int const r = k + pivots_[std::size_t(j)] - 1; r != k + j) exchange_rows(k + j, r, k, k + width);
    return true;
  }

  /// In all columns but [from, to).
  void exchange_rows(int a, int b, int from, int to) {
    for (int j = 0; j < from; ++j) std::swap(*at(a, j), *at(b, j));
    for (int j = to; j < nf_; ++j) std::swap(*at(a, j), *at(b, j));
    std::swap_ranges(right(a), right(a) + below_, right(b));
    std::swap(f_.rows[a], f_.rows[b]);
  }

  /// Up to `width` pivots, each column made ready when its turn comes. Returns where the next panel begins.
  int one_by_one(int k, int width, int& candidates) {
    int const first = k;
    column_.resize(std::size_t(m_));
    T* const c = column_.data();
    while (k < first + width && k < candidates) {
      std::copy(at(first, k), at(first, k) + (m_ - first), c + first);
      for (int p = first; p < k; ++p) {
        T const u = c[p];
        if (u == T(0)) continue;
        T const* const l = at(0, p);
        for (int i = p + 1; i < m_; ++i) c[i] -= l[i] * u;
      }
      int best = k;
      R largest = 0, all = 0;
      for (int i = k; i < nf_; ++i)
        if (R const size = magnitude(c[i]); size > largest) largest = size, best = i;
      for (int i = complete_ ? m_ : nf_; i < m_; ++i) all = std::max(all, magnitude(c[i]));
      if (!(largest > tiny_ && largest >= threshold_ * all)) {
        if (!complete_) {
          --candidates;
          std::swap_ranges(at(0, k), at(0, k) + m_, at(0, candidates));
          std::swap(f_.columns[k], f_.columns[candidates]);
          continue;
        }
        c[best] = T(replacement_);
        ++out_.replaced;
      }
      if (best != k) {
        exchange_rows(k, best, nf_, nf_);
        std::swap(c[k], c[best]);
      }
      T const pivot = c[k];
      T* const to = at(0, k);
      std::copy(c + first, c + k + 1, to + first);
      for (int i = k + 1; i < m_; ++i) to[i] = c[i] / pivot;
      ++k;
    }
    return k;
  }

  /// What the pivots [first, k) do in the summed columns that are left.
  void update_summed(int first, int k) {
    int const w = k - first, columns = nf_ - k;
    if (w == 0 || columns == 0) return;
    lapack::trsm('L', 'L', 'N', 'U', w, columns, at(first, first), m_, at(first, k), m_);
    subtract('N', m_ - k, columns, w, at(k, first), m_, at(first, k), m_, at(k, k), m_);
  }

  void finish(int pivots) {
    R largest = 0;
    for (int j = 0; j < nf_; ++j)
      for (int i = 0; i <= std::min(j, pivots - 1); ++i) largest = std::max(largest, abs2(*at(i, j)));
    if (below_ > 0 && pivots > 0) {
      solve_right('L', 'T', 'U', below_, pivots, f_.panel, m_, f_.right, below_);
      subtract('T', below_, nf_ - pivots, pivots, f_.right, below_, at(pivots, 0), m_, right(pivots), below_);
      subtract('T', below_, below_, pivots, at(nf_, 0), m_, f_.right, below_, f_.update, below_);
      for (std::size_t i = 0; i < std::size_t(below_) * std::size_t(pivots); ++i) largest = std::max(largest, abs2(f_.right[i]));
    }
    out_.largest = std::sqrt(double(largest));
  }

  Front<T> const& f_;
  int m_, nf_, below_;
  bool complete_;
  R threshold_, tiny_, replacement_;
  Eliminated out_;
  std::vector<T> backup_, column_;
  std::vector<int> pivots_;
};

template <class T>
class HermitianFront {
  using R = real_t<T>;

 public:
  HermitianFront(Front<T> const& f, Pivoting const& p, T* diagonal, T* lower)
      : f_(f),
        m_(f.size),
        nf_(f.summed),
        last_(f.size == f.summed),
        threshold_(R(std::min(p.threshold, 0.5))),
        tiny_(R(p.tiny)),
        replacement_(R(p.replacement)),
        d_(diagonal),
        lower_(lower),
        ld_(std::size_t(m_) * hermitian_width),
        first_(std::size_t(m_)),
        second_(std::size_t(m_)) {}

  Eliminated run() {
    int k = 0, candidates = nf_, begun = 0;
    for (;;) {
      if (k >= candidates) {  // one more where the second row of a pivot of two had been set aside
        if (candidates == nf_) break;
        if (k == begun) {
          if (!f_.complete) break;
          last_ = true;
        }
        candidates = nf_;
        begun = k;
        continue;
      }
      from_ = k;
      while (k < candidates && k - from_ < hermitian_width - 1)
        if (!take(k, candidates)) {
          --candidates;
          exchange(k, candidates, k);
        }
      // the summed columns that are left
      int const w = k - from_, columns = nf_ - k;
      if (w > 0 && columns > 0) {
        each_block(columns, 2.0 * (m_ - k) * columns * w, [&](int j, int count) {
          lapack::subtract_product('C', m_ - k - j, count, w, product(k + j, from_), m_, at(k + j, from_), m_, at(k + j, k + j), m_);
        });
      }
    }
    out_.pivots = k;
    finish(k);
    return out_;
  }

 private:
  T* at(int i, int j) const { return f_.panel + std::size_t(j) * std::size_t(m_) + std::size_t(i); }
  /// Of L D, for a column of the panel that is under way.
  T* product(int i, int j) { return ld_.data() + std::size_t(j - from_) * std::size_t(m_) + std::size_t(i); }

  /// Column j of what is left, rows [k, m), with what the panel's pivots [from, k) do.
  void load(int j, int k, std::vector<T>& c) {
    for (int i = k; i < j; ++i) c[std::size_t(i)] = conj(*at(j, i));
    for (int i = j; i < m_; ++i) c[std::size_t(i)] = *at(i, j);
    for (int p = from_; p < k; ++p) {
      T const by = conj(*at(j, p));
      if (by == T(0)) continue;
      T const* const w = product(0, p);
      for (int i = k; i < m_; ++i) c[std::size_t(i)] -= w[i] * by;
    }
    c[std::size_t(j)] = T(real(c[std::size_t(j)]));
  }

  /// Rows and columns a < b of what is left from row k on, and of L and the panel's L D.
  void exchange(int a, int b, int k) {
    if (a == b) return;
    for (int j = 0; j < k; ++j) std::swap(*at(a, j), *at(b, j));
    for (int j = from_; j < k; ++j) std::swap(*product(a, j), *product(b, j));
    for (int j = k; j < a; ++j) std::swap(*at(a, j), *at(b, j));
    std::swap(*at(a, a), *at(b, b));
    for (int j = a + 1; j < b; ++j) {
      T const t = conj(*at(j, a));
      *at(j, a) = conj(*at(b, j));
      *at(b, j) = t;
    }
    *at(b, a) = conj(*at(b, a));
    for (int i = b + 1; i < m_; ++i) std::swap(*at(i, a), *at(i, b));
    std::swap(f_.rows[a], f_.rows[b]);
  }

  struct Largest {
    R size = 0;
    int row = -1;
  };
  /// Beside rows `one` and `other`, of the summed rows (with which row) or of all.
  Largest largest(std::vector<T> const& c, int k, int end, int one, int other) const {
    Largest out;
    for (int i = k; i < end; ++i)
      if (i != one && i != other)
        if (R const size = magnitude(c[std::size_t(i)]); size > out.size) out = {size, i};
    return out;
  }

  /// A pivot of one or two at k; false if column k has none that is good enough.
  bool take(int& k, int candidates) {
    auto& c = first_;
    load(k, k, c);
    R const own = magnitude(c[std::size_t(k)]);
    auto const of_all = largest(c, k, m_, k, k);
    if (own > tiny_ && own >= threshold_ * of_all.size) return take_one(k, c);
    auto const summed = largest(c, k, nf_, k, k);
    if (summed.row < 0 || !(std::max(own, summed.size) > tiny_)) {
      if (!last_) return false;
      if (own > tiny_) return take_one(k, c);
      c[std::size_t(k)] = T(replacement_);
      ++out_.replaced;
      return take_one(k, c);
    }
    int const r = summed.row;
    auto& d = second_;
    load(r, k, d);
    R const other = magnitude(d[std::size_t(r)]);
    auto const of_r = largest(d, k, m_, r, r);
    T const off = c[std::size_t(r)];
    auto const take_other = [&] {
      exchange(k, r, k);
      std::swap(d[std::size_t(k)], d[std::size_t(r)]);
      return take_one(k, d);
    };
    if (other > tiny_ && other >= threshold_ * of_r.size) return take_other();
    R const ckk = real(c[std::size_t(k)]), drr = real(d[std::size_t(r)]), size = magnitude(off);
    R const rest_c = largest(c, k, m_, k, r).size, rest_d = largest(d, k, m_, k, r).size;
    // of the block scaled by its largest entry, so that nothing overflows
    R const det = std::abs((ckk / size) * drr - size);
    bool const good = det > tiny_ && other * rest_c / size + rest_d <= det / threshold_ && rest_c + own * rest_d / size <= det / threshold_;
    if (!good && !last_) return false;
    if (!good) {  // Bunch and Kaufman (1977), of the summed rows: one of the three always is
      constexpr R alpha = R(0.6403882032022076);
      R const summed_of_r = largest(d, k, nf_, r, r).size;
      if (own * summed_of_r >= alpha * summed.size * summed.size) return take_one(k, c);
      if (other >= alpha * summed_of_r) return take_other();
    }
    if (r != k + 1) {
      exchange(k + 1, r, k);
      std::swap(c[std::size_t(k + 1)], c[std::size_t(r)]);
      std::swap(d[std::size_t(k + 1)], d[std::size_t(r)]);
    }
    (void)candidates;
    return take_two(k);
  }

  bool take_one(int& k, std::vector<T> const& c) {
    R const pivot = real(c[std::size_t(k)]);
    std::copy(c.begin() + k, c.end(), product(k, k));
    T* const l = at(0, k);
    for (int i = k + 1; i < m_; ++i) l[i] = c[std::size_t(i)] / T(pivot);
    l[k] = T(1);
    d_[k] = T(pivot);
    lower_[k] = T(0);
    out_.negative += pivot < 0;
    out_.largest = std::max(out_.largest, double(std::abs(pivot)));
    ++k;
    return true;
  }

  /// [l_k l_k+1] = [c d] D^-1 with D = [a conj(b); b e].
  bool take_two(int& k) {
    auto const &c = first_, &d = second_;
    R const a = real(c[std::size_t(k)]), e = real(d[std::size_t(k + 1)]);
    T const b = c[std::size_t(k + 1)];
    R const size = magnitude(b);
    R const det = (a / size) * (e / size) - 1;  // of D / |b|
    T const bs = b / T(size);
    R const as = a / size, es = e / size;
    std::copy(c.begin() + k, c.end(), product(k, k));
    std::copy(d.begin() + k, d.end(), product(k, k + 1));
    T *const l0 = at(0, k), *const l1 = at(0, k + 1);
    for (int i = k + 2; i < m_; ++i) {
      T const x = c[std::size_t(i)] / T(size), y = d[std::size_t(i)] / T(size);
      l0[i] = (x * T(es) - y * bs) / T(det);
      l1[i] = (y * T(as) - x * conj(bs)) / T(det);
    }
    l0[k] = l1[k + 1] = T(1);
    l0[k + 1] = T(0);
    d_[k] = T(a);
    d_[k + 1] = T(e);
    lower_[k] = b;
    lower_[k + 1] = T(0);
    ++out_.two_by_two;
    out_.negative += det < 0 ? 1 : a < 0 ? 2 : 0;
    out_.largest = std::max({out_.largest, double(std::abs(a)), double(size), double(std::abs(e))});
    k += 2;
    return true;
  }

  /// The update: C -= L (L D)^H.
  void finish(int pivots) {
    int const below = m_ - nf_;
    if (below == 0 || pivots == 0) return;
    std::vector<T> scaled(std::size_t(below) * std::size_t(pivots));
    multiply_columns(BlockDiagonal<T>{pivots, d_, lower_}, below, at(nf_, 0), m_, scaled.data(), below);
    subtract_lower(below, pivots, scaled.data(), below, at(nf_, 0), m_, f_.update, below);
  }

  Front<T> const& f_;
  int m_, nf_, from_ = 0;
  bool last_;  // pivots need not suit rows that are not summed, if there are any
  R threshold_, tiny_, replacement_;
  T *d_, *lower_;
  Eliminated out_;
  std::vector<T> ld_, first_, second_;
};

}  // namespace

template <class T>
Eliminated factor_lu(Front<T> const& front, Pivoting const& pivoting) {
  return LuFront<T>(front, pivoting).run();
}

template <class T>
Eliminated factor_hermitian(Front<T> const& front, Pivoting const& pivoting, T* diagonal, T* lower) {
  return HermitianFront<T>(front, pivoting, diagonal, lower).run();
}

template <class T>
Eliminated factor_cholesky(Front<T> const& f) {
  int const m = f.size, nf = f.summed, below = m - nf;
  auto const at = [&](int i, int j) { return f.panel + std::size_t(j) * std::size_t(m) + std::size_t(i); };
  Eliminated out;
  constexpr int width = 2 * panel_width;
  for (int k = 0; k < nf; k += width) {
    int const w = std::min(width, nf - k), end = k + w;
    if (int const info = lapack::potrf(w, at(k, k), m); info > 0) {
      out.not_positive = k + info - 1;
      return out;
    }
    if (m > end) solve_right('L', 'C', 'N', m - end, w, at(k, k), m, at(end, k), m);
    each_block(nf - end, 2.0 * (m - end) * (nf - end) * w, [&](int j, int count) {
      lapack::subtract_product('C', m - end - j, count, w, at(end + j, k), m, at(end + j, k), m, at(end + j, end + j), m);
    });
  }
  subtract_lower(below, nf, at(nf, 0), m, at(nf, 0), m, f.update, below);
  out.pivots = nf;
  return out;
}

#define ASTERISM_INSTANTIATE(T)                                    \
  template Eliminated factor_lu(Front<T> const&, Pivoting const&); \
  template Eliminated factor_cholesky(Front<T> const&);            \
  template Eliminated factor_hermitian(Front<T> const&, Pivoting const&, T*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
