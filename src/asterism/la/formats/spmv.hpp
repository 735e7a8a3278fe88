// Products with a local sparse block, in the storage that moves the fewest bytes for its pattern.
//
// Three storages, chosen by looking at the block once:
//   csr          rows as given; loops unrolled for runs of equally long rows. A row's sum depends on its entries alone, not on
//                where it stands.
//   row_pattern  where many consecutive rows have the same column offsets (grids), the offsets are
//                stored once per run of rows and the values in groups of one SIMD vector of rows:
//                8 bytes an entry in float64 instead of 12, and no gathers. Runs whose rows have the same values too (constant
//                coefficients) have those once: nothing but x and y is moved.
//   sell         where the lengths of rows change from one to the next, columns have no locality, or the matrix is
//                small enough for the caches: in each window of 4096 rows those of equal length stand together, in
//                groups of one SIMD vector of rows (SELL-C-sigma without padding). Where the columns of such a run of groups
//                are within 65536 of each other they are stored in 16 bits. What is left of a length is csr.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {
namespace kernel {
template <class T>
struct ProductRows;
}
class CusparseProduct;
enum class GpuProduct : std::uint8_t;

/// What is done with s = (A x)_i.
enum class Epilogue : std::uint8_t {
  assign,           ///< y = s
  residual,         ///< y = b - s
  smooth,           ///< y = x + w (b - s), square blocks
  add,              ///< y += s
  subtract,         ///< y -= s
  subtract_scaled,  ///< y -= w s
};

class Product {
 public:
  enum class Storage : std::uint8_t { automatic, csr, row_pattern, sell };
  Product() = default;
  /// For the epilogues that define every row of y. csr storage shares the block's arrays.
  explicit Product(Csr const& block, Storage storage = Storage::automatic);
  /// For the epilogues that update y: rows without entries are skipped.
  static Product coupling(Csr const& block, Storage storage = Storage::automatic);

  /// The same rows with other values, in csr storage, which takes them as they are.
  Product with_values(Dtype dtype, Array values) const;

  Storage storage() const { return storage_; }
  std::string_view storage_name() const {
    return storage_ == Storage::row_pattern ? "row_pattern" : storage_ == Storage::sell ? "sell" : "csr";
  }
  bool shares_block() const { return storage_ == Storage::csr; }  ///< the block's arrays, not a copy
  /// Least bytes of one product (matrix, x, y), k columns.
  double bytes(std::int64_t k = 1) const;
  std::int64_t nnz() const { return nnz_; }
  std::size_t memory_bytes() const;

  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b = {},
           Array const& w = {}) const;

  // for the argument that resolves to what a kernel reads (spmv.cpp)
  Array const& values() const { return values_; }
  void prepare_for_gpu() const;
  template <class T>
  kernel::ProductRows<T> rows(device::Memory m) const;
  std::array<Array const*, 13> arrays() const {
    return {&offsets_,
            &columns_,
            &values_,
            &row_ids_,
            &lengths_,
            &slices_,
            &slice_rows_,
            &slice_columns_,
            &slice_values_,
            &runs_,
            &run_columns_,
            &run_values_,
            run_tiles_ ? &run_tiles_ : &slice_tiles_};
  }

 private:
  friend struct ProductBuilder;
  Storage storage_ = Storage::csr;
  Dtype dtype_ = Dtype::float64;
  std::int32_t rows_ = 0, cols_ = 0;
  bool coupling_ = false;
  std::int64_t nnz_ = 0;
  // csr, or the rows that are in no run
  Array offsets_, columns_, values_;
  Array row_ids_;  // int32; nothing: all rows in order
  std::int32_t listed_rows_ = 0;
  Array lengths_;  // int32 triples (first row, end row, length): runs of equal length
  std::int32_t length_runs_ = 0;
  // sell
  Array slices_, slice_rows_, slice_columns_, slice_values_;
  std::int32_t slice_runs_ = 0;
  bool scattered_ = false;  // columns have no locality: x is asked for ahead
  // row_pattern
  Array runs_;  // PatternRun
  std::int32_t run_count_ = 0;
  Array run_columns_, run_values_;
  mutable Array run_tiles_, slice_tiles_;  // made for a GPU; a product has one of them
  std::shared_ptr<CusparseProduct> const& cusparse() const;
  struct Cusparse {
    GpuProduct choice;  // it was looked for under
    std::shared_ptr<CusparseProduct> product;
  };
  mutable std::optional<Cusparse> cusparse_;  // on a GPU
};

}  // namespace asterism::la
