// Compressed rows, the block's own arrays (a copy of values as Bfloat16); loops unrolled for runs of equally long rows. A row's sum depends
// on its entries alone, not on where it stands.
#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "asterism/la/formats/csr/csr_format.kernels.hpp"
#include "asterism/la/formats/format_argument.hpp"

namespace asterism::la {

class CusparseProduct;
enum class GpuProduct : std::uint8_t;

std::vector<std::int32_t> rows_with_entries(Csr const& block);

/// Rows of a block in csr, in order or listed. Formats for rows of some kind keep the others so.
class CsrArrays {
 public:
  /// In the block's arrays, but for values that are held as Bfloat16.
  CsrArrays(Csr const& block, Writes writes);
  /// The listed ones in this order; a copy, for products in that dtype.
  CsrArrays(Csr const& block, std::span<std::int32_t const> ids) : CsrArrays(block, ids, block.dtype) {}
  CsrArrays(Csr const& block, std::span<std::int32_t const> ids, Dtype dtype);
  CsrArrays with_values(Array values) const;

  std::int32_t count() const { return count_; }
  Array const& values() const { return values_; }
  /// Of listed rows.
  std::span<std::int32_t const> row_ids() const { return {row_ids_.as<std::int32_t>(), row_ids_.bytes() / sizeof(std::int32_t)}; }
  std::span<std::int64_t const> offsets() const { return {offsets_.as<std::int64_t>(), std::size_t(count_) + 1}; }
  template <class T, class V>
  kernel::CsrRows<T, V> view(device::Memory m) const {
    return {offsets_.as<std::int64_t>(m),
            columns_.as<std::int32_t>(m),
            values_.as<V>(m),
            row_ids_.bytes() ? row_ids_.as<std::int32_t>(m) : nullptr,
            lengths_.as<kernel::LengthRun>(m),
            std::int32_t(lengths_.bytes() / sizeof(kernel::LengthRun)),
            count_,
            std::int64_t(columns_.bytes() / sizeof(std::int32_t))};
  }
  template <class F>
  void each_array(F const& f) const {
    f(offsets_), f(columns_), f(values_), f(row_ids_), f(lengths_);
  }
  /// That a product reads.
  double bytes() const { return double(offsets_.bytes() + columns_.bytes() + values_.bytes() + row_ids_.bytes()); }

 private:
  Array offsets_, columns_, values_;
  Array row_ids_;  // int32; nothing: all rows in order
  Array lengths_;  // LengthRun
  std::int32_t count_ = 0;
};

class CsrFormat final : public SparseFormat {
 public:
  explicit CsrFormat(Csr const& block, Writes writes = Writes::all_rows);
  /// The same rows with other values, taken as they are.
  std::shared_ptr<CsrFormat const> with_values(Dtype dtype, Array values) const;

  std::string_view name() const override { return "csr"; }
  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b,
           Array const& w) const override;
  double bytes(std::int64_t k) const override { return csr_.bytes() + vector_bytes(k, writes_, csr_.count()); }
  std::size_t memory_bytes() const override { return total_bytes(*this); }
  Array const* shared_values() const override { return bfloat16_ ? nullptr : &csr_.values(); }

  template <class T, class V>
  kernel::CsrRows<T, V> view(device::Memory m) const {
    return csr_.view<T, V>(m);
  }
  template <class F>
  void each_array(device::Memory, F const& f) const {
    csr_.each_array(f);
  }

 private:
  CsrFormat(CsrFormat const& pattern, Dtype dtype, Array values);
  std::shared_ptr<CusparseProduct> cusparse() const;
  Writes writes_;
  CsrArrays csr_;
  // on a GPU
  struct Cusparse {
    GpuProduct choice;  // it was looked for under
    std::shared_ptr<CusparseProduct> product;
  };
  mutable std::mutex mutex_;
  mutable std::optional<Cusparse> cusparse_;
};

}  // namespace asterism::la
