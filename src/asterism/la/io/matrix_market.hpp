// Matrix Market files, .mtx and .mtx.gz, read by all ranks together.
//
// Format: Boisvert, Pozo, Remington (NISTIR 5935). Coordinate and array; real, integer, complex,
// pattern; general, symmetric, skew-symmetric, Hermitian. Every rank parses its share of the lines
// (a byte range of a plain file; of a compressed one, which can only be read from its start, every
// rank inflates all and parses its share), and entries travel to the owners of their rows.
#pragma once
#include <string>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::la::io {

struct MatrixMarketHeader {
  bool coordinate = true;  ///< else array
  enum class Field : std::uint8_t { real, complex, integer, pattern } field = Field::real;
  enum class Symmetry : std::uint8_t { general, symmetric, skew, hermitian } symmetry = Symmetry::general;
  std::int64_t rows = 0, cols = 0, entries = 0;
  Dtype dtype() const { return field == Field::complex ? Dtype::complex128 : Dtype::float64; }
};

/// Only the header. Errors name the file and the line.
MatrixMarketHeader read_matrix_market_header(std::string const& path);

/// Rows are dealt evenly (in whole blocks of block_size), columns as rows if square. Collective;
/// an error on any rank is thrown on all.
Matrix read_matrix_market(std::string const& path, comm::Communicator const& comm, std::int64_t block_size = 1);

/// An array file (dense), or a coordinate file with one column or row: (n) or (n, k). layout: who owns
/// which row; its global size must be the file's.
Vector read_matrix_market_vector(std::string const& path, Layout const& layout);

/// Written beside the file by all ranks, and renamed. .gz is not written. Collective.
void write_matrix_market(std::string const& path, Vector const& x);
void write_matrix_market(std::string const& path, Matrix const& A);

}  // namespace asterism::la::io
