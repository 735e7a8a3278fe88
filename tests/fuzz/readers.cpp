// libFuzzer's entry to the readers: the first byte of an input chooses one, the rest is the file. `make fuzz`.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "asterism/device/host/memory.hpp"
#include "asterism/la/io/archive.hpp"
#include "asterism/la/io/harwell_boeing.hpp"
#include "asterism/la/io/matrix_market.hpp"
#include "asterism/la/io/petsc_binary.hpp"

namespace {

using namespace asterism;

constexpr std::int64_t most = 100'000;  // what a header may announce here: more is allowed, and takes memory

/// A matrix that was read must be one: products of it with ones stay within their memory.
void use(la::Matrix const& A) {
  la::Vector x(A.domain(), A.dtype()), y(A.range(), A.dtype());
  la::fill(x, 1.0);
  A.apply(x, y);
#ifdef ASTERISM_PLANTED_BUG  // is the fuzzer any good?
  static std::int64_t volatile entries_of_rows[8] = {};
  if (A.global_rows() == 8 && A.nnz() > 3) entries_of_rows[A.global_rows()] += A.nnz();
#endif
}

void read(char format, std::string const& path) {
  comm::Communicator const alone;
  switch (format) {
    case 'm':
    case 'v': {
      auto const h = la::io::read_matrix_market_header(path);
      if (h.rows > most || h.cols > most || h.rows * h.cols > most * 10) return;
      if (format == 'm') use(la::io::read_matrix_market(path, alone));
      else la::io::read_matrix_market_vector(path, la::Layout(alone, h.rows));
      return;
    }
    case 'h':
    case 'r': {
      auto const rows = la::io::harwell_boeing_rows(path);
      if (rows > most) return;
      if (format == 'h') use(la::io::read_harwell_boeing(path, alone));
      else la::io::read_harwell_boeing_rhs(path, la::Layout(alone, rows));
      return;
    }
    case 'p':
      if (la::io::is_petsc_binary(path)) use(la::io::read_petsc_matrix(path, alone));
      return;
    case 'q':
      if (la::io::is_petsc_binary(path)) la::io::read_petsc_vector(path, la::Layout(alone, la::io::petsc_vector_size(path)));
      return;
    case 'a': la::io::read_archive(path, alone); return;
    default: return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static int const file = memfd_create("input", 0);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  if (size < 1) return -1;
  device::host::set_memory_cap(std::size_t(256) << 20);
  if (ftruncate(file, 0) != 0 || pwrite(file, data + 1, size - 1, 0) != ssize_t(size - 1)) return -1;
  try {
    read(char(data[0]), path);
  } catch (Error const&) {  // what a reader is to do with anything else
  }
  return 0;
}
