// Factors that another library makes: scaled, solved with and judged as ours are.
#pragma once
#include <string>

#include "asterism/direct/foreign/peer.hpp"

namespace asterism::direct::foreign {

/// The same on all ranks: errors of kind option or dtype for what the peer does not have.
void require_offered(PeerOptions const& options, Dtype dtype);

/// Rows and columns are scaled by powers of two first, as for our own factors. Errors: those of direct::Factors; unsupported, with the
/// package to install, where the peer is not found.
std::unique_ptr<SerialFactors> foreign_factors(la::Csr const& a, PeerOptions const& options);

}  // namespace asterism::direct::foreign
