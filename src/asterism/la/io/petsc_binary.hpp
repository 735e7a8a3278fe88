// PETSc's binary files (MatView, VecView with a binary viewer), read and written by all ranks together.
//
// Big-endian: a class id, sizes, lengths of rows, columns, values. Indices have 32 or 64 bits and values are real or complex as
// PETSc was configured, which the file does not say: indices show in the class id, values in the file's length. A block size
// stands in FILE.info beside.
#pragma once
#include <string>

#include "asterism/la/matrix.hpp"

namespace asterism::la::io {

bool is_petsc_binary(std::string const& path);
/// Rows of the first vector(s) of the file.
std::int64_t petsc_vector_size(std::string const& path);
/// The first matrix of the file. Rows are dealt evenly in whole blocks: of `block_size`, or of FILE.info's where that is 0. Collective;
/// an error on any rank is thrown on all.
Matrix read_petsc_matrix(std::string const& path, comm::Communicator const& comm, std::int64_t block_size = 0);
/// The vectors of equal size that follow each other, (n) or (n, k). Collective.
Vector read_petsc_vector(std::string const& path, Layout const& layout);
/// Values are written in double precision; indices in 64 bits where 32 are too few. Collective.
void write_petsc_binary(std::string const& path, Matrix const& A);
void write_petsc_binary(std::string const& path, Vector const& x);

}  // namespace asterism::la::io
