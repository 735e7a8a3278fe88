#include "asterism/precond/direct/dense_lu.kernels.hpp"

#include <algorithm>
#include <vector>

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/direct/lapack.hpp"

namespace asterism::precond::kernel {
namespace {

/// Columns of a block. At n = 4000 one thread takes 1.25 times as long as getrf with 128, 1.05 with 384; at n <= 1000 all are alike.
int width_of(int n) { return std::clamp(n / 10 / 64 * 64, 128, 384); }

/// Columns [from, to) of what is right of a block, for each thread. The first thread also factors the next block, whose `next` columns come
/// first; that takes as long as three products of this size.
std::vector<int> shares_of(int threads, int from, int n, int next, int width) {
  std::vector<int> cuts{from};
  double const columns = n - from, factoring = 1.5 * next * next / width;
  double const first = (columns + factoring) / threads - factoring;
  cuts.push_back(threads == 1 ? n : from + std::clamp(int(first) / 8 * 8, next, n - from));
  for (int t = 1; t < threads; ++t) cuts.push_back(t + 1 == threads ? n : cuts[1] + (n - cuts[1]) / (threads - 1) * t);
  return cuts;
}

}  // namespace

// Right-looking, with the next block factored while other threads still update what is right of it. A thread's share are whole columns, so
// none waits for another within a block.
template <class T>
int factorise(int n, T* a, int* pivots, std::function<void(int)> const& between) {
  // the bits depend on the number of threads
  int const threads = lapack::threads_are_ours && !reproducible() ? device::host::team_size() : 1;
  lapack::Threads const one_each(1);
  int const width = width_of(n);
  int zero = -1;
  auto const at = [=](int i, int j) { return a + std::size_t(j) * std::size_t(n) + std::size_t(i); };
  auto const factor = [&](int j) {
    int const w = std::min(width, n - j);
    int const info = lapack::getrf(n - j, w, at(j, j), n, pivots + j);
    for (int k = j; k < j + w; ++k) pivots[k] += j;
    if (info > 0) zero = j + info - 1;
  };
  if (n > 0) factor(0);
  for (int j = 0; zero < 0 && j < n; j += width) {
    int const w = std::min(width, n - j), right = j + w, next = std::min(width, n - right);
    between(right);
    auto const update = [&](int from, int to) {
      if (from >= to) return;
      lapack::laswp(to - from, at(0, from), n, j, right, pivots);
      lapack::solve_lower(w, to - from, at(j, j), at(j, from), n);
      lapack::subtract_product('N', n - right, to - from, w, at(right, j), at(j, from), at(right, from), n);
    };
    auto const cuts = shares_of(threads, right, n, next, width);
    device::Executor executor;
    device::parallel_ranges(
        executor, threads,
        [&](std::int64_t begin, std::int64_t end) {
          for (auto t = std::size_t(begin); t < std::size_t(end); ++t) {
            if (t == 0 && next > 0) {
              update(right, right + next);
              factor(right);
              update(right + next, cuts[1]);
            } else {
              update(cuts[t], cuts[t + 1]);
            }
            if (t + 1 == std::size_t(threads) && j > 0) lapack::laswp(j, a, n, j, right, pivots);
          }
        },
        1);
  }
  return zero;
}

template int factorise(int, float*, int*, std::function<void(int)> const&);
template int factorise(int, double*, int*, std::function<void(int)> const&);
template int factorise(int, Complex<float>*, int*, std::function<void(int)> const&);
template int factorise(int, Complex<double>*, int*, std::function<void(int)> const&);

}  // namespace asterism::precond::kernel
