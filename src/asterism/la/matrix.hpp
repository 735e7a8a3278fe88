// A sparse matrix distributed by rows: a diagonal block (my columns) and couplings to other ranks.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/la/formats/csr.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/formats/symmetric_half/symmetric_half.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::la {

/// My rows with global columns, ascending in each row.
struct GlobalRows {
  std::vector<std::int64_t> offsets, columns;
  Array values;
  Dtype dtype = Dtype::float64;
};

/// Shared handle; copies are the same matrix.
class Matrix final : public Operator {
 public:
  Matrix() = default;
  /// My rows as CSR with global columns; within a row in any order, repeats are summed.
  /// I is int32 or int64 (offsets and columns alike). Collective; out-of-range columns are an error
  /// that names the row.
  template <class I>
  static Matrix from_rows(Layout const& rows, Layout const& columns, Dtype dtype, std::span<I const> offsets,
                          std::span<I const> column_indices, void const* values);
  /// Entries (i, j, v) anywhere: rows of other ranks are sent there, repeats are summed in the order
  /// (rank, position); negative i or j are ignored. Collective.
  /// I is int32 or int64.
  template <class I>
  static Matrix from_coo(Layout const& rows, Layout const& columns, Dtype dtype, std::span<I const> i, std::span<I const> j,
                         void const* values);
  /// From blocks as they are stored: columns of `coupling` index `ghosts` (ascending global columns of others).
  static Matrix from_blocks(Layout const& rows, Layout const& columns, Csr diagonal, Csr coupling, std::vector<std::int64_t> ghosts);

  explicit operator bool() const { return data_ != nullptr; }
  Space const& range() const override;
  Space const& domain() const override;
  Dtype dtype() const override;
  comm::Communicator const& comm() const { return range().comm(); }
  std::int64_t global_rows() const { return range().global_size(); }
  std::int64_t global_cols() const { return domain().global_size(); }
  std::int64_t local_nnz() const;
  std::int64_t nnz() const;  ///< all ranks, counted at assembly
  /// Of a matrix that holds half of it: made whole at the first call, and kept.
  Csr const& diagonal_block() const;
  Csr const& coupling_block() const;
  std::vector<std::int64_t> const& ghosts() const;
  comm::StarForest const& halo() const;
  /// Of its halo; see QueuedForest.
  void prepare_halo_for_gpu() const;
  std::string_view storage_name() const;
  /// Least bytes of one product of this rank: matrix, x and y once.
  double product_bytes() const;
  std::size_t memory_bytes() const;

  void apply(Vector const& x, Vector& y) const override;
  void residual(Vector const& b, Vector const& x, Vector& r) const override;
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override;
  void smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const override;
  void apply_add(Vector const& x, Vector& y) const override;
  Scalar apply_and_dot(Vector const& x, Vector& y) const override;
  Scalar smooth_and_dot(Vector const& b, Vector const& x, Vector const& w, Vector& y) const override;
  Matrix const* matrix() const override { return this; }
  std::string describe() const override;

  Vector diagonal() const override;
  /// The largest |re| or |im| of all entries that is finite; where half is held, the largest sum of a row. Collective.
  double largest_entry() const;
  /// The same pattern, and the values times 2^exponent, or its negative. Collective where half of the matrix is held.
  Matrix scaled(int exponent, bool negated) const;
  /// max over rows of sum |a_ij| |s_i|; s: (n) scale by rows, or none
  double scaled_row_sum_norm(Vector const* s = nullptr) const;
  /// Collective.
  double frobenius_norm() const;
  GlobalRows to_rows() const;
  /// In the general storage.
  Matrix converted(Dtype dtype) const;
  /// A float32 matrix with its values rounded to Bfloat16, of which products read 2 bytes each; they compute in float32.
  Matrix rounded_to_bfloat16() const;
  /// The same pattern with other values, as many as my entries, in the order of to_rows(); pattern and messages are shared. Collective.
  Matrix with_values(Dtype dtype, std::int64_t count, void const* values) const;
  /// The same pattern with these arrays as the entries of both blocks, in their order; a queue that works there may still be filling them.
  /// What needs them on the host waits and brings them there.
  Matrix with_block_values(Dtype dtype, Array const& diagonal, Array const& coupling, device::Memory made_at) const;
  /// As they are, with a queue perhaps at work on them; empty where a half is held.
  std::pair<Array, Array> block_values() const;
  /// Whether the pattern is one and the same in memory. Not collective.
  bool shares_pattern_with(Matrix const& other) const;
  /// Whether both have entries at the same places and the same ranks their rows. Collective.
  bool has_pattern_of(Matrix const& other) const;
  /// The same matrix whose diagonal blocks hold the diagonal and what is right of it: half of the memory, and of what a product moves. What
  /// needs rows (most preconditioners, files) makes and keeps the whole blocks. Collective; an error if a block is not symmetric.
  Matrix symmetric(SymmetricHalf::Kind kind) const;
  /// The same matrix with whole blocks.
  Matrix general() const;
  /// How the diagonal block is stored if it is half of it; else nothing.
  std::shared_ptr<SymmetricHalf const> const& half() const;
  bool is_same(Matrix const& other) const { return data_ == other.data_; }
  /// The same entries in the same memory, with a space of its own.
  Matrix shared() const;
  /// Frees the assembled rows once the product storage exists; only products are possible afterwards.
  /// adds: for apply_add() instead of the other products.
  void keep_product_only(bool adds = false);
  /// The same for products alone, in another precision. Where rows have patterns (row_pattern), no copy is made on the way.
  Matrix for_products(Dtype dtype, bool adds = false) const;

  /// Another meaning of its rows: block size, near-null space, coordinates.
  void set_space(Space space);

 private:
  struct Products;
  struct PatternProducts;
  struct Data;
  void product(char const* event, Epilogue whole, Epilogue rest, Vector const& x, Vector& y, Vector const* b = nullptr,
               Vector const* w = nullptr) const;
  std::optional<Scalar> product_and_dot(char const* event, Epilogue e, Vector const& x, Vector& y, Vector const* b = nullptr,
                                        Vector const* w = nullptr) const;
  void require_operands(Epilogue e, Vector const& x, Vector const& y, Vector const* b = nullptr, Vector const* w = nullptr) const;
  void product_here(char const* event, Epilogue whole, Epilogue rest, Vector const& x, Vector& y, Vector const* b, Vector const* w) const;
  void transposed_product(Vector const& x, Vector& y, bool conjugate) const;
  void ordered_product(SparseFormat const& product, char const* event, Epilogue e, Vector const& x, Vector& y, Array const& b) const;
  std::shared_ptr<Data> data_;
};

}  // namespace asterism::la
