// Where the lengths of rows change from one to the next, columns have no locality, or the matrix is small enough for the caches: in each
// window of 4096 rows those of equal length stand together, in groups of one SIMD vector of rows (SELL-C-sigma without padding). Where the
// columns of such a run of groups are within 65536 of each other they are stored in 16 bits. What is left of a length is csr.
#pragma once
#include "asterism/base/lazy.hpp"
#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/formats/sell/sell_format.kernels.hpp"

namespace asterism::la {

class SellFormat final : public SparseFormat {
 public:
  SellFormat(Csr const& block, Writes writes);

  std::string_view name() const override { return "sell"; }
  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b,
           Array const& w) const override;
  double bytes(std::int64_t k) const override;
  std::size_t memory_bytes() const override { return total_bytes(*this); }

  template <class T, class V>
  kernel::SellBlock<T, V> view(device::Memory m) const;
  template <class F>
  void each_array(device::Memory m, F const& f) const {
    f(runs_), f(row_ids_), f(columns_), f(values_);
    rest_.each_array(f);
    if (m == device::Memory::gpu) f(tiles());
  }

 private:
  struct Groups;
  SellFormat(Csr const& block, Writes writes, Groups groups);
  void fill(Csr const& block, Groups const& groups);
  std::int32_t grouped() const { return std::int32_t(row_ids_.bytes() / sizeof(std::int32_t)); }
  Array const& tiles() const;

  Writes writes_;
  bool scattered_;  // columns have no locality: x is asked for ahead
  Array runs_, row_ids_, columns_, values_;
  CsrArrays rest_;
  mutable Lazy<Array> tiles_;  // on a GPU
};

}  // namespace asterism::la
