#include "asterism/precond/multigrid/smoothers/colouring.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/cancellation.hpp"
#include "asterism/la/products/matrix_product.hpp"

namespace asterism::precond {
namespace {

std::uint64_t hashed(std::int64_t i) { return mixed_bits(std::uint64_t(i) + 0x9e3779b97f4a7c15u); }
/// Who is coloured first; no two rows are equal.
bool comes_before(std::int64_t i, std::int64_t j) { return std::pair(hashed(i), i) < std::pair(hashed(j), j); }

/// The entries of a matrix as neighbours, and what is known of the colours of other ranks' rows.
struct Neighbours {
  la::Matrix A;
  std::vector<std::int32_t> ghost;
  explicit Neighbours(la::Matrix of) : A(std::move(of)), ghost(A.ghosts().size(), -1) {}
  void exchange(std::vector<std::int32_t>& colours) {
    if (A.comm().size() > 1) A.halo().bcast(colours.data(), ghost.data());
  }
  /// f(global index, colour) for each neighbour of my row i but itself.
  template <class F>
  void each(std::int64_t i, std::vector<std::int32_t> const& colours, F const& f) const {
    auto const with = [&](la::Csr const& block, auto const& take) {
      auto const ptr = block.row_offsets();
      auto const col = block.column_indices();
      for (auto p = ptr[std::size_t(i)]; p < ptr[std::size_t(i) + 1]; ++p) take(col[std::size_t(p)]);
    };
    with(A.diagonal_block(), [&](std::int32_t c) {
      if (c != i) f(A.range().begin() + c, colours[std::size_t(c)]);
    });
    with(A.coupling_block(), [&](std::int32_t c) { f(A.ghosts()[std::size_t(c)], ghost[std::size_t(c)]); });
  }
};

}  // namespace

std::vector<std::int32_t> colours_of(la::Matrix const& A, bool symmetric) {
  auto const n = A.range().local_size(), begin = A.range().begin();
  std::vector<Neighbours> sides;
  sides.emplace_back(A);
  if (!symmetric) sides.emplace_back(la::transposed(A, false));
  Progress progress(format("colours of {} rows", A.global_rows()), double(std::max<std::int64_t>(A.global_rows(), 1)));
  comm::Cancellation cancel(A.comm(), progress);
  std::vector<std::int32_t> colours(std::size_t(n), -1);
  // my rows in that order: what a row waits for on this rank is coloured in the same round
  std::vector<std::int32_t> open(std::size_t(n), 0);
  for (std::int64_t i = 0; i < n; ++i) open[std::size_t(i)] = std::int32_t(i);
  std::sort(open.begin(), open.end(), [&](auto i, auto j) { return comes_before(begin + i, begin + j); });
  std::vector<char> taken;
  for (std::int64_t left = A.global_rows(); left > 0;) {
    std::vector<std::int32_t> wait;
    for (auto const i : open) {
      std::fill(taken.begin(), taken.end(), 0);
      bool ready = true;
      for (auto const& side : sides)
        side.each(i, colours, [&](std::int64_t j, std::int32_t colour) {
          if (!comes_before(j, begin + i)) return;
          if (colour < 0) {
            ready = false;
            return;
          }
          if (std::size_t(colour) >= taken.size()) taken.resize(std::size_t(colour) + 1, 0);
          taken[std::size_t(colour)] = 1;
        });
      if (ready) colours[std::size_t(i)] = std::int32_t(std::find(taken.begin(), taken.end(), 0) - taken.begin());
      else wait.push_back(i);
    }
    open = std::move(wait);
    for (auto& side : sides) side.exchange(colours);
    left = A.comm().sum(std::int64_t(open.size()));
    cancel.at(double(A.global_rows() - left));
    cancel.throw_if_requested();
  }
  return colours;
}

}  // namespace asterism::precond
