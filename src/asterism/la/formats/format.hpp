// A local sparse block as products read it.
//
// A storage format is a class in files of its own, NAME_format.*, and a line of the table below. Formats are made from blocks in csr
// (csr.hpp); the class alone knows its arrays, its kernel, and which blocks it suits.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// What is done with s = (A x)_i.
enum class Epilogue : std::uint8_t {
  assign,           ///< y = s
  residual,         ///< y = b - s
  smooth,           ///< y = x + w (b - s), square blocks
  add,              ///< y += s
  subtract,         ///< y -= s
  subtract_scaled,  ///< y -= w s
};

/// Which rows of y products write. A block is stored for one of them.
enum class Writes : std::uint8_t {
  all_rows,           ///< assign, residual, smooth
  rows_with_entries,  ///< add, subtract, subtract_scaled: the others are skipped
};
constexpr Writes written_by(Epilogue e) {
  return e == Epilogue::assign || e == Epilogue::residual || e == Epilogue::smooth ? Writes::all_rows : Writes::rows_with_entries;
}

/// A block in some format. Held by shared pointers: queued products hold it too.
class SparseFormat : public std::enable_shared_from_this<SparseFormat> {
 public:
  virtual ~SparseFormat() = default;
  SparseFormat(SparseFormat const&) = delete;
  SparseFormat& operator=(SparseFormat const&) = delete;

  /// As users see it.
  virtual std::string_view name() const = 0;
  /// On k columns. The order of a row's sum is the format's, always the same one.
  virtual void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b = {},
                   Array const& w = {}) const = 0;
  /// Whether run_and_dot() is there, in the host's memory.
  virtual bool dots() const { return false; }
  /// assign or smooth of one column; sum, a number of kernel::Sum, becomes x^T y, or b^T y after smooth. One pass over memory.
  virtual void run_and_dot(device::Queue const&, Epilogue, Array const& /* x */, Array const& /* y */, Array const& /* sum */,
                           Array const& /* b */ = {}, Array const& /* w */ = {}) const {
    ASTERISM_ASSERT(false);
  }
  /// Least bytes of one product (matrix, x, y), k columns.
  virtual double bytes(std::int64_t k = 1) const = 0;
  virtual std::size_t memory_bytes() const = 0;
  /// The same in float32, of the float64 block that this was made from; nullptr: it is made from the converted block.
  virtual std::shared_ptr<SparseFormat const> narrowed(Csr const&) const { return nullptr; }
  /// The block's own values, which an assembly on a queue may still be filling; nullptr: the format has a copy.
  virtual Array const* shared_values() const { return nullptr; }
  bool shares_block() const { return shared_values() != nullptr; }
  Dtype dtype() const { return dtype_; }
  std::int64_t nnz() const { return nnz_; }

 protected:
  explicit SparseFormat(Csr const& block) : SparseFormat(block, block.dtype) {}
  /// Of products in that dtype.
  SparseFormat(Csr const& block, Dtype dtype) : SparseFormat(dtype, block.rows, block.cols, block.nnz()) { bfloat16_ = block.bfloat16; }
  SparseFormat(Dtype dtype, std::int32_t rows, std::int32_t cols, std::int64_t nnz) : dtype_(dtype), rows_(rows), cols_(cols), nnz_(nnz) {}
  /// Of x and y, where each is read or written once: all rows, or `updated` ones, which are read and written.
  double vector_bytes(std::int64_t k, Writes writes, std::int64_t updated) const {
    return double(k) * double(size_of(dtype_)) * (double(cols_) + (writes == Writes::all_rows ? double(rows_) : 2 * double(updated)));
  }

  Dtype dtype_;
  bool bfloat16_ = false;  // so are the values held; sums and vectors are float32
  std::int32_t rows_, cols_;
  std::int64_t nnz_;
};

/// Whether a format is asked to look if others would be faster.
enum class FormatChoice : std::uint8_t { where_it_suits, wherever_possible };

struct FormatEntry {
  std::string_view name;
  /// One look at the block decides and makes. nullptr: it does not suit, or is not possible.
  std::shared_ptr<SparseFormat const> (*make)(Csr const& block, Writes writes, FormatChoice choice);
  /// The same in float32, of a float64 block; none: of the converted block.
  std::shared_ptr<SparseFormat const> (*make_narrow)(Csr const& block, Writes writes) = nullptr;
};

/// The table. FORMAT(name) stands for name_format(), defined with the class; the first that suits is taken, and csr suits all.
#define ASTERISM_FORMATS(FORMAT) \
  FORMAT(row_pattern)            \
  FORMAT(bcsr)                   \
  FORMAT(sell)                   \
  FORMAT(csr)

#define ASTERISM_DECLARE_FORMAT(NAME) FormatEntry NAME##_format();
ASTERISM_FORMATS(ASTERISM_DECLARE_FORMAT)
#undef ASTERISM_DECLARE_FORMAT

std::span<FormatEntry const> formats();
/// In the format that moves the fewest bytes, by the pattern.
std::shared_ptr<SparseFormat const> choose_format(Csr const& block, Writes writes = Writes::all_rows);
/// For products in another precision. known: the format of the block itself, where that is made.
std::shared_ptr<SparseFormat const> choose_format(Csr const& block, Writes writes, Dtype dtype, SparseFormat const* known);

}  // namespace asterism::la
