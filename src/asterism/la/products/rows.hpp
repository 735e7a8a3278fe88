// My rows of a distributed matrix in one piece, columns ascending by global index: the form that the
// set-up works in, because sums formed in it do not depend on the partition.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "asterism/comm/communicator/cancellation.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::la {

using comm::Layout;

/// f(i) for i in [0, n), by all threads. Looks for Ctrl-C now and then; throws if it ends early.
template <class F>
void cancellable_for(comm::Cancellation& cancel, std::int64_t n, F const& f) {
  constexpr std::int64_t chunk = 1024;
  device::Executor executor;
  device::parallel_ranges(executor, n, [f, &cancel](std::int64_t begin, std::int64_t end) {
    for (auto first = begin; first < end; first += chunk) {
      if (cancel.requested()) return;
      for (auto i = first, last = std::min(first + chunk, end); i < last; ++i) f(i);
    }
  });
  cancel.throw_if_requested();
}
/// Where a loop over rows looks for Ctrl-C.
inline bool is_look(std::int64_t row) { return row % 256 == 0; }

/// Uninitialised array (large ones on huge pages).
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t n) : array_(std::size_t(n) * sizeof(T)), data_(array_.template as<T>()), size_(n) {}
  Buffer(std::int64_t n, T value) : Buffer(n) { std::fill(begin(), end(), value); }
  explicit Buffer(device::Array array)
      : array_(std::move(array)), data_(array_.template as<T>()), size_(std::int64_t(array_.bytes() / sizeof(T))) {}
  T* data() const { return data_; }  // hot loops take this pointer once
  T& operator[](std::int64_t i) const { return data_[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  std::int64_t size() const { return size_; }
  /// The first n alone stay. Nobody else holds the array.
  void shrink(std::int64_t n) {
    if (array_) array_.buffer()->shrink(std::size_t(n) * sizeof(T));
    array_ = array_.view(0, std::size_t(n) * sizeof(T));
    size_ = n;
  }
  device::Array const& array() const { return array_; }

 private:
  device::Array array_;
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// Local column numbers in global order: ghosts below my range, my range, ghosts above.
struct ColumnMap {
  std::int64_t begin = 0;            ///< first global index that is mine
  std::int32_t own = 0, below = 0;   ///< how many are mine, and ghosts with smaller indices
  std::vector<std::int64_t> ghosts;  ///< ascending
  std::int32_t size() const { return own + std::int32_t(ghosts.size()); }
  std::int64_t global(std::int32_t l) const {
    return l < below ? ghosts[std::size_t(l)] : l < below + own ? begin + (l - below) : ghosts[std::size_t(l - own)];
  }
  std::int32_t local(std::int64_t g) const;  ///< g is mine or a ghost
  bool is_own(std::int32_t l) const { return l >= below && l < below + own; }
  static ColumnMap make(Layout const& layout, std::vector<std::int64_t> ghosts);
};

/// Fills the ghost entries of arrays indexed by a ColumnMap.
class Halo {
 public:
  Halo() = default;
  Halo(Layout const& layout, ColumnMap const& map);
  template <class T>
  void update(T* data, std::int64_t k = 1) const {
    if (active_) forest_.bcast(data + below_ * k, data, k);
  }

 private:
  comm::StarForest forest_;
  std::int64_t below_ = 0;
  bool active_ = false;
};

template <class T>
struct Rows {
  std::int32_t count = 0;
  Buffer<std::int64_t> ptr;
  Buffer<std::int32_t> col;
  Buffer<T> val;
  ColumnMap map;
  std::int64_t nnz() const { return count ? ptr[count] : 0; }
};

/// Rows that a thread appends. Room that is never written costs no memory, so expectations may be generous.
template <class T>
struct Piece {
  Buffer<std::int32_t> col;
  Buffer<T> val;
  std::int64_t size = 0;
  std::int64_t times = 1;  ///< reserve() takes this many times the room that is asked for

  void reserve(std::int64_t total);
  void make_room(std::int64_t more) {
    if (size + more <= col.size()) return;
    times = 1;
    reserve(2 * (size + more));
  }
};

/// f(first, last) for shares of items [0, n) with equal work, one for each thread, where work[i] is what the items before i take.
void in_shares(std::int32_t n, std::int64_t const* work, std::function<void(std::int32_t first, std::int32_t last)> const& f);

/// Fills `rows`, whose arrays but ptr are not there yet: append(first, last, piece) is called for shares of items [0, n) with equal work,
/// one for each thread, where work[i] is what the items before i take. It appends their rows and sets ptr[i + 1] to the length of each
/// row i; offsets stand there afterwards. Where cancel.requested(), append() leaves the rest out, and this throws.
template <class T>
void append_in_shares(std::int32_t n, std::int64_t const* work, Rows<T>& rows, comm::Cancellation& cancel,
                      std::function<void(std::int32_t first, std::int32_t last, Piece<T>& piece)> const& append);

/// Shares the arrays on one rank, merges the two blocks on several.
template <class T>
Rows<T> rows_of(Matrix const& A);
/// New values for what rows_of() made of a matrix with these places; on several ranks into the array that is there.
template <class T>
void take_values(Rows<T>& rows, Matrix const& A);
/// Back to a matrix; `columns` is the layout that the map's global indices live in.
template <class T>
Matrix matrix_of(Rows<T> const& rows, Layout const& row_layout, Layout const& columns);
/// The same in their arrays, where nobody else holds them and one thread works: no second copy of the entries.
template <class T>
Matrix matrix_of(Rows<T>&& rows, Layout const& row_layout, Layout const& columns);

/// Rows of other ranks, one after the other; columns are global.
template <class T>
struct GhostRows {
  std::vector<std::int64_t> lengths, columns;
  std::vector<T> values;
};
/// The rows of map.ghosts. append_row(i, columns, values) adds local row i of B, which another rank asks for. Collective.
template <class T>
GhostRows<T> ghost_rows(Layout const& B_rows, ColumnMap const& map,
                        std::function<void(std::int32_t, std::vector<std::int64_t>&, std::vector<T>&)> const& append_row);
/// Those of B itself. Collective.
template <class T>
GhostRows<T> ghost_rows(Rows<T> const& B, Layout const& B_rows, ColumnMap const& map);
/// One map for the columns of that and these.
ColumnMap joined(ColumnMap const& map, std::span<std::int64_t const> columns, Layout const& layout);
/// The numbers in `to` of all that `from` has; `to` holds them all.
std::vector<std::int32_t> renumbering(ColumnMap const& from, ColumnMap const& to);

/// B's rows for each of `map`'s indices, own and ghosts, with one common column map. Collective.
template <class T>
Rows<T> with_ghost_rows(Rows<T> const& B, Layout const& B_rows, Layout const& B_columns, ColumnMap const& map);

/// The transpose, or the conjugate one, distributed by `columns` (the layout of B's columns); entries ascending. Collective.
template <class T>
Rows<T> transpose(Rows<T> const& B, Layout const& rows, Layout const& columns, bool conjugate, comm::Cancellation& cancel);

}  // namespace asterism::la
