// The half of a symmetric local block: the diagonal and what is right of it.
//
// Rows are cut into blocks of up to 16384. An entry serves its own row and, mirrored, that of its column; a block's sums, also those for
// rows of later blocks (its halo), are formed in the caches, so columns are numbers within the block and take 16 bits. About 5 bytes for
// each entry of the whole matrix in float64, where plain rows take 12. The order of all sums is fixed: bits do not depend on threads.
#pragma once
#include <vector>

#include "asterism/la/formats/format.hpp"

namespace asterism::la {

namespace kernel {
template <class T>
struct HalfRows;
}

/// Not in the table of formats: whether it can be had depends on the values, and the user asks for it.
class SymmetricHalf final : public SparseFormat {
 public:
  enum class Kind : std::uint8_t { symmetric, hermitian };  ///< A^T = A or A^H = A

  /// Of a square block. An entry and its mirror image may differ by rounding (100 eps of the largest in their rows); the right one is kept.
  /// Otherwise, where one of them is not there, or where an entry is NaN or infinite, a value error that names them; their rows are
  /// counted from `first_row`.
  SymmetricHalf(Csr const& block, Kind kind, std::int64_t first_row = 0);

  Kind kind() const { return kind_; }
  Array const& diagonal() const { return diagonal_; }
  /// The whole block.
  Csr expanded() const;
  /// sum_j |a_ij| of each row
  std::vector<double> absolute_row_sums() const;

  std::string_view name() const override { return kind_ == Kind::hermitian ? "hermitian" : "symmetric"; }
  /// With all epilogues.
  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b,
           Array const& w) const override;
  double bytes(std::int64_t k) const override;
  std::size_t memory_bytes() const override;

 private:
  bool conjugates() const { return kind_ == Kind::hermitian && is_complex(dtype_); }
  template <class T>
  kernel::HalfRows<T> view() const;
  /// f(i, j, v) for each entry of the whole block: row by row those of the half, each followed by its mirror image.
  template <class T, class F>
  void each(F const& f) const;
  Kind kind_;
  std::int32_t block_count_ = 0;
  Array blocks_, diagonal_, ends_, columns_, values_, halo_, received_;
  std::vector<std::int32_t> without_diagonal_;  // rows
};

}  // namespace asterism::la
