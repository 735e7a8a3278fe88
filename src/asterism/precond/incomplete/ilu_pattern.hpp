// The places of incomplete factors: found from the matrix's pattern alone, before any value is.
#pragma once
#include <cstdint>

#include "asterism/la/formats/csr.hpp"

namespace asterism::precond {

/// The places of a, and the diagonal's; values are not set.
la::Csr with_full_diagonal(la::Csr const& a);
/// The places of f, and of the entries that eliminations up to a level of `most` make: those have level 1 + the levels of the two they come
/// from. Values are not set. Saad (2003), alg. 10.5.
la::Csr with_fill(la::Csr const& f, std::int64_t most);

}  // namespace asterism::precond
