// A matrix from entries whose places are known once and whose values come many times: finite elements, Newton's method, time steps.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "asterism/la/assembly/entries.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::la {

class Assembly {
 public:
  /// My entries stand in these stacks, anywhere in the matrix; negative i or j are ignored. Nothing of the stacks is kept. Collective; an
  /// index out of range, or one of another rank where those are refused, is an error on all ranks. J: int32 or int64. Cost: linear in the
  /// entries, which are sorted within their rows; those in others' rows are announced there. what: for messages.
  template <class J>
  Assembly(Layout const& rows, Layout const& columns, std::span<EntryStack<J> const> stacks, Remote remote = Remote::send,
           char const* what = "Assembly");
  /// Single entries (i[e], j[e]).
  Assembly(Layout const& rows, Layout const& columns, std::span<std::int64_t const> i, std::span<std::int64_t const> j);
  /// Of the values: my entries as they were given.
  Layout const& entries() const;
  std::int64_t nnz() const;  ///< of the matrix, all ranks

  /// The matrix of these values, (entries), on their queue: entries at the same place are summed in their order, and added
  /// to those of `base`, if there is one, which came from this assembly. Nobody waits (on several ranks: but for what was to be sent
  /// before); the matrix's values are where the queue works. Same bits every time, on every queue. Collective. Cost: one pass over values
  /// and entries; those of others' rows are sent. The memory of a matrix that is gone is used for the next but one.
  Matrix matrix(Vector const& values, Matrix const* base = nullptr) const;

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_;
};

}  // namespace asterism::la
