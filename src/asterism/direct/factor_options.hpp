// What a user may say of sparse factors, and what is known of them before numbers are computed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace asterism::direct {

/// lu: any matrix. cholesky: Hermitian positive definite, L L^H. hermitian: Hermitian, L D L^H with blocks of one and two in D.
enum class FactorKind : std::uint8_t { lu, cholesky, hermitian };
enum class Matching : std::uint8_t { automatic, yes, no };

struct FactorOptions {
  FactorKind kind = FactorKind::lu;
  /// Of lu rows are matched to columns, of hermitian a matching gives the scales; automatic: if the diagonal has zeros or weak entries.
  Matching matching = Matching::automatic;
  std::string ordering = "auto";  ///< auto, natural, rcm, amd, nd, colamd; auto: nd of large matrices where METIS is found, else amd
  /// Of hermitian: rows that are to be one pivot of two, where zeros are on the diagonal, stay together. For more fill pivots need not be
  /// delayed, which is for factors whose pivots come from blocks.
  bool pairs = false;
  bool equilibrate = true;  ///< rows and columns are scaled by powers of two
  /// A pivot is at least this times the largest entry of its column. Smaller: less fill; larger: less growth. Not of cholesky.
  double pivot_threshold = 0.1;
  /// Most bytes of factors and work space; 0: what the machine has. More is an error of kind memory, before it is taken.
  std::size_t memory_limit = 0;
  double flop_limit = 0;  ///< of the numeric phase; 0: any. More is an error of kind value, before it begins
};

/// What is known before numbers are computed.
struct FactorPrediction {
  std::int64_t entries = 0;  ///< of all factors, without pivots that are exchanged between fronts
  double flops = 0;
  std::size_t bytes = 0;  ///< of factors and work space at their peak
};

}  // namespace asterism::direct
