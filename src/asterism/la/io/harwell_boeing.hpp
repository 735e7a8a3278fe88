// Harwell-Boeing and Rutherford-Boeing files.
//
// Formats: Duff, Grimes, Lewis (1992), users' guide for the Harwell-Boeing collection; Duff, Grimes, Lewis (1997), the
// Rutherford-Boeing collection. Columns one after the other in lines of Fortran formats. Assembled matrices: real, complex, integer,
// pattern (ones); unsymmetric, symmetric, skew, Hermitian, rectangular. Every rank parses the file and keeps its rows.
#pragma once
#include <string>

#include "asterism/la/matrix.hpp"

namespace asterism::la::io {

/// Rows are dealt evenly in whole blocks. Collective; an error on any rank, with the line, is thrown on all.
Matrix read_harwell_boeing(std::string const& path, comm::Communicator const& comm, std::int64_t block_size = 1);

/// Rows of the matrix.
std::int64_t harwell_boeing_rows(std::string const& path);

/// The full right-hand sides that a Harwell-Boeing file may hold, (n) or (n, k). Collective.
Vector read_harwell_boeing_rhs(std::string const& path, Layout const& layout);

}  // namespace asterism::la::io
