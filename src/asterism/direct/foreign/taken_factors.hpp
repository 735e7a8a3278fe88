// Triangular factors that were made elsewhere, solved with by our kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "asterism/direct/serial_factors.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct::foreign {

/// A lower triangle by supernodes: columns next to each other of nearly one pattern are a dense panel, with few zeros stored.
class SupernodalTriangle {
 public:
  SupernodalTriangle() = default;
  /// columns: row j has the row numbers of column j of T, j first. Errors of kind value, with `name`: an entry above the diagonal, a
  /// diagonal entry that is zero or missing.
  SupernodalTriangle(la::Csr const& columns, char const* name);
  /// x becomes T^-1 x, or T^-T x; rows of k numbers.
  template <class T>
  void solve(bool transposed, std::int64_t k, T* x) const;
  std::int64_t stored() const { return std::int64_t(values_.bytes() / size_of(dtype_)); }
  std::int32_t supernodes() const { return std::int32_t(panels_.size()); }
  std::size_t bytes() const { return values_.bytes() + 4 * rows_.size() + sizeof(Panel) * panels_.size(); }

 private:
  struct Panel {
    std::int32_t first, width, below;
    std::int64_t values, rows;  // where its own begin
  };
  void add(la::Csr const& columns, std::int32_t first, std::int32_t end, std::vector<std::int32_t> const& below);
  Dtype dtype_ = Dtype::float64;
  std::vector<Panel> panels_;
  std::vector<std::int32_t> rows_;
  la::Array values_;  // panels column-major, one behind the other
};

/// L U = B with B[perm_r[i], perm_c[j]] = row_scale[i] a_ij, as SciPy counts: what a user has of another library, without A.
class TakenFactors {
 public:
  /// l: L by columns; u: U by rows. Errors of kind value: what is no triangle, or no permutation, or singular.
  TakenFactors(la::Csr l, la::Csr u, std::vector<std::int32_t> const& perm_r, std::vector<std::int32_t> const& perm_c,
               std::vector<double> row_scale);
  /// b becomes A^-1 b, A^-T b ('T') or A^-H b ('C'); n x k numbers, row-major. Each number of the factors is read once for up to 8 columns.
  void solve(char trans, std::int64_t k, void* b) const;
  /// Of A.
  Determinant determinant() const;
  /// An estimate of the condition number of diag(row_scale) A in the 1-norm.
  double condition() const;
  std::size_t memory_bytes() const { return L_.bytes() + U_.bytes(); }
  std::int32_t size() const { return l_.rows; }
  Dtype dtype() const { return l_.dtype; }
  std::int64_t nnz() const { return l_.nnz() + u_.nnz(); }

 private:
  template <class T>
  void solve_triangles(bool transposed, std::int64_t k, T* x) const;
  la::Csr l_, u_;
  std::vector<std::int32_t> rows_, columns_;  // of A, for each row and column of L U
  std::vector<double> row_scale_;
  SupernodalTriangle L_, U_;  // of U: its transpose
};

}  // namespace asterism::direct::foreign
