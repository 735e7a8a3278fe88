// Asterism's own files (.ast): matrices, vectors and text by name, written by all ranks and read on any number of them.
//
// Little-endian: a header, a table of arrays, the arrays at multiples of 4096 bytes, and a CRC-32 of each 256 KiB of each array; the
// header's own covers it and the table. A rank reads its rows and checks the blocks that they are in.
#pragma once
#include <map>
#include <string>

#include "asterism/la/matrix.hpp"

namespace asterism::la::io {

struct Archive {
  std::map<std::string, Matrix> matrices;  ///< with their block size, near-null space and coordinates
  std::map<std::string, Vector> vectors;   ///< (n) or (n, k)
  std::map<std::string, std::string> texts;
};

/// Everything has the ranks of `comm`. Written beside and renamed. Collective; an error on any rank is thrown on all.
void write_archive(std::string const& path, comm::Communicator const& comm, Archive const& things);
/// Rows are dealt evenly, a matrix's in whole blocks; vectors as the rows of a matrix of as many, if there is one. Collective; a damaged
/// file is a FormatError that names the array and the place, on all ranks.
Archive read_archive(std::string const& path, comm::Communicator const& comm);

struct ArchiveNames {
  std::vector<std::string> matrices;
  std::map<std::string, std::int64_t> vectors;  ///< and their rows
};
ArchiveNames archive_names(std::string const& path);
/// One of them. Collective.
Matrix read_archive_matrix(std::string const& path, std::string const& name, comm::Communicator const& comm);
Vector read_archive_vector(std::string const& path, std::string const& name, Layout const& layout);

}  // namespace asterism::la::io
