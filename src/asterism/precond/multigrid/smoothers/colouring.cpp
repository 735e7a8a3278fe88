#include "asterism/precond/multigrid/smoothers/colouring.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>
#include <span>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/cancellation.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/products/matrix_product.hpp"

namespace asterism::precond {
namespace {

/// Who is coloured first: the smaller one. No two rows have the same.
std::uint64_t hashed(std::int64_t i) { return mixed_bits(std::uint64_t(i) + 0x9e3779b97f4a7c15u); }

/// Colours that neighbours have.
class Taken {
 public:
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  void add(std::int32_t colour) {
    auto const word = std::size_t(colour) / 64;
    if (word >= words_.size()) words_.resize(word + 1, 0);
    words_[word] |= std::uint64_t(1) << (colour % 64);
  }
  std::int32_t first_free() const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      if (~words_[w] != 0) return std::int32_t(64 * w) + std::countr_one(words_[w]);
    return std::int32_t(64 * words_.size());
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Rows of a matrix and their neighbours: its entries, and those of its transpose if there is one.
class Colouring {
 public:
  Colouring(la::Matrix const& A, la::Matrix const& transposed)
      : begin_(A.range().begin()), colours_(std::size_t(A.range().local_size()), -1) {
    for (auto const& side : {A, transposed})
      if (side) sides_.emplace_back(side);
  }

  /// The open rows that wait for others, after those that could be coloured have been. Rows are looked at in any order: the colour of one
  /// depends on those before it alone, and it waits for them.
  std::vector<std::int32_t> round(std::vector<std::int32_t> const& open) {
    std::mutex mutex;
    std::map<std::int64_t, std::vector<std::int32_t>> waiting;  // of each piece
    device::Executor executor;
    device::parallel_ranges(executor, std::int64_t(open.size()), [&](std::int64_t first, std::int64_t last) {
      std::vector<std::int32_t> wait;
      Taken taken;
      for (auto n = first; n < last; ++n) {
        auto const row = open[std::size_t(n)];
        if (!colour(row, taken)) wait.push_back(row);
      }
      std::lock_guard const lock(mutex);
      waiting[first] = std::move(wait);
    });
    std::vector<std::int32_t> out;
    for (auto const& [first, rows] : waiting) out.insert(out.end(), rows.begin(), rows.end());
    return out;
  }
  /// Of other ranks' rows.
  void exchange() {
    for (auto& side : sides_)
      if (side.A.comm().size() > 1) side.A.halo().bcast(colours_.data(), side.of_ghosts.data());
  }
  std::vector<std::int32_t> const& colours() const { return colours_; }

 private:
  /// A matrix, and what is asked of it for each row.
  struct Side {
    explicit Side(la::Matrix const& of)
        : A(of), own(A.diagonal_block()), others(A.coupling_block()), ghosts(A.ghosts()), of_ghosts(ghosts.size(), -1) {}
    la::Matrix A;
    struct Block {
      explicit Block(la::Csr const& c) : ptr(c.row_offsets()), col(c.column_indices()) {}
      std::span<std::int64_t const> ptr;
      std::span<std::int32_t const> col;
    } own, others;
    std::span<std::int64_t const> ghosts;
    std::vector<std::int32_t> of_ghosts;  // their colours
  };
  /// Whether all neighbours before it have their colours.
  bool colour(std::int32_t row, Taken& taken) {
    auto const mine = hashed(begin_ + row);
    taken.clear();
    auto const take = [&](std::int64_t other, std::int32_t c) {
      if (hashed(other) >= mine) return true;  // it comes later, or is this row
      if (c >= 0) taken.add(c);
      return c >= 0;
    };
    for (auto const& side : sides_) {
      auto const each = [row](Side::Block const& block, auto const& f) {
        for (auto p = block.ptr[std::size_t(row)]; p < block.ptr[std::size_t(row) + 1]; ++p)
          if (!f(block.col[std::size_t(p)])) return false;
        return true;
      };
      auto const own = [&](std::int32_t c) {  // other threads colour rows
        return take(begin_ + c, std::atomic_ref(colours_[std::size_t(c)]).load(std::memory_order_relaxed));
      };
      auto const ghost = [&](std::int32_t c) { return take(side.ghosts[std::size_t(c)], side.of_ghosts[std::size_t(c)]); };
      if (!each(side.own, own) || !each(side.others, ghost)) return false;
    }
    std::atomic_ref(colours_[std::size_t(row)]).store(taken.first_free(), std::memory_order_relaxed);
    return true;
  }

  std::vector<Side> sides_;
  std::int64_t begin_;
  std::vector<std::int32_t> colours_;
};

}  // namespace

// In the order of the hashes, greedily: Jones and Plassmann (1993).
std::vector<std::int32_t> colours_of(la::Matrix const& A, bool symmetric) {
  Progress progress(format("colours of {} rows", A.global_rows()), double(std::max<std::int64_t>(A.global_rows(), 1)));
  comm::Cancellation cancel(A.comm(), progress);
  Colouring colouring(A, symmetric ? la::Matrix() : la::transposed(A, false));
  std::vector<std::int32_t> open(std::size_t(A.range().local_size()));
  std::iota(open.begin(), open.end(), 0);
  for (std::int64_t left = A.global_rows(); left > 0;) {
    for (std::size_t before = open.size() + 1; open.size() < before;) {
      before = open.size();
      open = colouring.round(open);
    }
    colouring.exchange();
    left = A.comm().sum(std::int64_t(open.size()));
    cancel.at(double(A.global_rows() - left));
    cancel.throw_if_requested();
  }
  return colouring.colours();
}

}  // namespace asterism::precond
