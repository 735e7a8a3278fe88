// Scalings, matching, order and symbolic phase of a sparse factorisation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/direct/factor_options.hpp"
#include "asterism/direct/symbolic/preparation.hpp"
#include "asterism/direct/symbolic/symbolic.hpp"
#include "asterism/la/formats/csr.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/matching.hpp"

namespace asterism::direct {

/// B = the scaled and permuted matrix, B[k, l] = row_scale[i] a_ij column_scale[j] for i = rows[k], j = columns[l], in the order of the
/// supernodes.
struct Analysis {
  FactorOptions options;
  Dtype dtype = Dtype::float64;
  std::int32_t n = 0;
  std::vector<std::int32_t> rows, columns;
  std::vector<double> row_scale, column_scale;
  Symbolic symbolic;
  FactorPrediction predicted;
  bool matched = false;
  bool scaled_by_matching = false;    ///< of kind hermitian: with rows where they are
  std::vector<std::int32_t> partner;  ///< of each row of A, with options.pairs; empty: all are alone
  std::string ordering;               ///< natural, rcm, amd or nd

  Analysis() = default;
  /// Errors of kind value: entries that are not finite, structurally singular; of kind shape: not square.
  Analysis(la::Csr const& a, FactorOptions const& options);
  /// Scalings for new numbers in the same pattern. False if the matching, or that there is none, does not suit them.
  bool rescale(la::Csr const& a);

  /// For each of a real symmetric matrix.
  double flops_of_one() const { return (hermitian() ? 1 : 2) * (is_complex(dtype) ? 4 : 1); }
  bool hermitian() const { return options.kind != FactorKind::lu; }
  char const* name() const;
  /// An error of kind value where more work is predicted than options.flop_limit.
  void require_work() const;
  /// B.
  la::Csr arranged(la::Csr const& a) const;

 private:
  void match(la::Csr const& a);
  void equilibrate(la::Csr const& a);
  bool asks_for_scales(la::Diagonal const& diagonal) const;
  void scale_alike(la::Matching const& found);
  /// An error where it leaves rows out.
  la::Matching matching_of(la::Csr const& a) const;
  la::Csr scaled(la::Csr const& a) const;
  std::vector<std::int32_t> order_of(la::Csr const& pattern, la::Graph const& graph);
  std::vector<std::int32_t> automatic_order(la::Graph const& graph);
  void analyse(la::Csr const& a);
  void predict(std::int64_t nnz);
};

}  // namespace asterism::direct
