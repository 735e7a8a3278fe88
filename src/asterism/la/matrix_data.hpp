// What a matrix holds: its blocks, and what products are done with.
#pragma once
#include <algorithm>

#include "asterism/base/lazy.hpp"
#include "asterism/base/log.hpp"
#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::la {

/// What products are done with, made at first use, by whichever thread comes first.
struct Matrix::Products {
  using Product = std::shared_ptr<SparseFormat const>;
  Lazy<Product> diagonal_product, coupling_product, adding_product;
  struct Transposed {
    Product diagonal, coupling;
  };
  Lazy<Transposed> transposed[2];  // plain, conjugated
  // -reproducible: whole rows, columns ascending, of x with the ghosts around it
  Lazy<Product> ordered, ordered_adding;
  Lazy<Matrix> ordered_transposed[2];
};

/// In the format that does not look at values: of all matrices with one pattern.
struct Matrix::PatternProducts {
  std::mutex mutex;
  std::shared_ptr<CsrFormat const> diagonal, adding, rest;
  std::shared_ptr<SparseFormat const> with(std::shared_ptr<CsrFormat const>& pattern, Csr const& block, Writes writes) {
    std::lock_guard const lock(mutex);
    if (!pattern) pattern = CsrFormat(block, writes).with_values(block.dtype, {});
    return pattern->with_values(block.dtype, block.values);
  }
};

struct Matrix::Data : Matrix::Products {
  Space rows, columns;
  Dtype dtype = Dtype::float64;
  Csr diagonal, coupling;  // with a half, `diagonal` is made from it when asked for: block()
  std::shared_ptr<SymmetricHalf const> half;
  std::vector<std::int64_t> ghosts;
  comm::QueuedForest halo;
  std::int64_t global_nnz = 0, local_nnz = 0;
  bool product_only = false;
  // where the values were made. On a GPU: products are made without looking at them
  device::Memory values_at = device::Memory::host;
  std::shared_ptr<PatternProducts> pattern_products = std::make_shared<PatternProducts>();

  SparseFormat const* ordered_for(Epilogue e);
  /// Whether there is, or can be made, what such products read, but for those in the order of global columns.
  bool has_plain(Epilogue e) { return half || !product_only || bool(e == Epilogue::add ? adding_product : diagonal_product); }
  /// Values that a queue made are the host's.
  void settle() const {
    for (auto const* const c : {&diagonal, &coupling}) c->values.settle(device::Access::read, "a matrix's values");
  }
  /// While another thread may be making the rows.
  std::shared_ptr<Data> copy() const {
    std::lock_guard const lock(rows_mutex());
    return std::make_shared<Data>(*this);
  }
  void make_rows() {
    if (!half) return;
    std::lock_guard const lock(rows_mutex());
    if (diagonal.offsets) return;
    diagonal = half->expanded();
    log::info("rows of a symmetric matrix are made: {} bytes",
              diagonal.offsets.bytes() + diagonal.columns.bytes() + diagonal.values.bytes());
  }
  Csr const& block() {
    settle();
    make_rows();
    return diagonal;
  }
  SparseFormat const& whole() { return half ? *half : *stored(diagonal_product, pattern_products->diagonal, Writes::all_rows); }
  /// What products are done with, where some kinds of them are all that was kept.
  SparseFormat const& any_product() {
    if (product_only && !half)
      for (auto const* const kept : {&diagonal_product, &adding_product, &ordered, &ordered_adding})
        if (*kept) return ***kept;
    return whole();
  }
  SparseFormat const& adding() { return half ? *half : *stored(adding_product, pattern_products->adding, Writes::rows_with_entries); }
  SparseFormat const& rest() {
    return *coupling_product.made_by([this] {
      ASTERISM_ASSERT(!product_only);
      if (values_at == device::Memory::gpu) return pattern_products->with(pattern_products->rest, coupling, Writes::rows_with_entries);
      settle();
      return choose_format(coupling, Writes::rows_with_entries);
    });
  }

 private:
  static std::mutex& rows_mutex() {
    static std::mutex mutex;
    return mutex;
  }
  Product const& stored(Lazy<Product>& product, std::shared_ptr<CsrFormat const>& pattern, Writes writes) {
    return product.made_by([&] {
      ASTERISM_ASSERT(!product_only);  // its rows are gone
      if (values_at == device::Memory::gpu) return pattern_products->with(pattern, diagonal, writes);
      return choose_format(block(), writes);
    });
  }
};

/// How many of the columns of other ranks, ascending, come before my own.
inline std::size_t ghosts_below(Layout const& columns, std::vector<std::int64_t> const& ghosts) {
  return std::size_t(std::lower_bound(ghosts.begin(), ghosts.end(), columns.begin()) - ghosts.begin());
}

}  // namespace asterism::la
