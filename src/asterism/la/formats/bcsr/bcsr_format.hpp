// Dense blocks of one size, with one column number for each: matrices with several unknowns a node, and the transfers between their
// levels. Rows of a block are a vector, so an entry of x is loaded once for all of them.
#pragma once
#include "asterism/la/formats/bcsr/bcsr_format.kernels.hpp"
#include "asterism/la/formats/format_argument.hpp"

namespace asterism::la {

/// Height and width of the largest blocks that a pattern consists of.
struct BlockShape {
  std::int32_t height, width;
  /// 1 x 1 where there are none of the sizes that the kernels know.
  static BlockShape of(Csr const& block);
};

class BcsrFormat final : public SparseFormat {
 public:
  BcsrFormat(Csr const& block, BlockShape shape, Writes writes);

  std::string_view name() const override { return "bcsr"; }
  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b,
           Array const& w) const override;
  double bytes(std::int64_t k) const override;
  std::size_t memory_bytes() const override { return total_bytes(*this); }

  template <class T, class V>
  kernel::BcsrRows<T, V> view(device::Memory m) const {
    return {offsets_.as<std::int64_t>(m),
            columns_.as<std::int32_t>(m),
            values_.as<V>(m),
            rows_ / shape_.height,
            shape_.height,
            shape_.width,
            std::int64_t(columns_.bytes() / sizeof(std::int32_t))};
  }
  template <class F>
  void each_array(device::Memory, F const& f) const {
    f(offsets_), f(columns_), f(values_);
  }

 private:
  BlockShape shape_;
  Writes writes_;
  std::int64_t rows_written_;
  Array offsets_, columns_, values_;
};

}  // namespace asterism::la
