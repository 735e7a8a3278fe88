// A matrix whose entries come one after the other, with their values, before anybody knows where they all are.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "asterism/la/assembly/assembly.hpp"

namespace asterism::la {

class Builder {
 public:
  /// Collective; the dtype and what becomes of remote entries are the same on all ranks.
  Builder(Layout rows, Layout columns, Dtype dtype, Remote remote = Remote::send);

  /// `count` blocks of entries: (i[k m + a], j[k n + b]) has the value (k m + a) n + b, where i has count * m indices and j count * n. A
  /// negative index: ignored. The sum of all that is added at a place is its entry. Not collective; what cannot be is an error, and nothing
  /// is added. Cost: a copy.
  void add(std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j, void const* values);
  /// The same, but each takes the place of what was added or inserted there before. An add after it needs a flush() in between.
  void insert(std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j, void const* values);
  /// What all ranks give from here on comes after what all ranks gave before. Every rank calls it as often as the others. Not collective.
  void flush();

  /// The matrix of all that was given since the one before, in the order (flush, adds before inserts, rank, position). Collective. Cost:
  /// that of an Assembly; where the places were those of the matrix before, in the same order, only that of its values. The memory is kept
  /// for the next.
  Matrix matrix();

  Layout const& rows() const { return rows_; }
  Layout const& columns() const { return columns_; }
  Dtype dtype() const { return dtype_; }
  std::int64_t entries() const { return last_.value; }  ///< values of this rank since the matrix before

 private:
  /// Memory that grows.
  class Store {
   public:
    void* data() const { return memory_.raw(); }
    /// The first `kept` bytes stay; as many as `bytes` have room.
    void* room(std::size_t kept, std::size_t bytes);

   private:
    Array memory_;
  };
  /// Blocks of one size and turn.
  struct Run {
    std::int64_t count = 0, m = 0, n = 0;
    int turn = 0;
  };
  struct Place {
    std::int64_t row = 0, column = 0, value = 0;  // in the stores
    std::size_t run = 0;                          // of whose blocks so many are before
    std::int64_t blocks = 0;
  };
  void put(char const* what, int turn, std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j,
           void const* values);
  /// Whether that stands where the matrix before had the same.
  bool follows(Run const& given, std::int64_t const* i, std::int64_t const* j) const;
  void forget_the_rest();

  Layout rows_, columns_;
  Dtype dtype_;
  Remote remote_;
  Store i_, j_, values_;
  std::vector<Run> runs_;
  Place last_;          // where the next entry goes
  bool known_ = false;  // so far all is as in the matrix before, whose places are behind `last_`
  int turn_ = 0, flushes_ = 0;
  std::optional<Assembly> plan_;  // of the matrix before
};

}  // namespace asterism::la
