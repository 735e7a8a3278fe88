// The blocks of the triangular factors that a matrix would have, before there are any numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

struct FactorPattern {
  std::shared_ptr<BlockPattern const> blocks;
  std::string ordering;      ///< natural, rcm, amd or nd
  std::int64_t entries = 0;  ///< of one triangle with its diagonal, zeros in supernodes counted
};

/// Of the pattern of A + A^T, as analyse() finds it; rows are not matched to columns first. ordering: natural, rcm, amd, nd, or auto: nd
/// where METIS is found, else amd. Errors of kind shape: not square; of kind option.
FactorPattern factor_pattern(la::Csr const& a, std::string const& ordering, std::int32_t widest);

}  // namespace asterism::direct
