// Handles and messages of MPI, for the files of the plug-in.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "asterism/comm/mpi/mpi_api.hpp"

namespace asterism::comm::plugin {

using Comm = MpiApi::Comm;

inline MPI_Comm comm(Comm h) {
  MPI_Comm c;
  std::memcpy(&c, &h, sizeof c);
  return c;
}

inline Comm handle(MPI_Comm c) {
  Comm h = 0;
  std::memcpy(&h, &c, sizeof c);
  return h;
}

// Messages above 2 GiB: a derived type of 2^20-byte blocks plus the rest, counted once.
class Message {
 public:
  explicit Message(std::int64_t bytes) {
    static std::int64_t const most = [] {
      auto const* const lowered = std::getenv("ASTERISM_TEST_MPI_COUNT");
      return lowered ? std::atoll(lowered) : INT_MAX;
    }();
    if (bytes <= most) {
      count = int(bytes);
      return;
    }
    std::int64_t const block = std::min<std::int64_t>(1 << 20, most);
    MPI_Datatype blocks, parts[2];
    MPI_Type_contiguous(int(block), MPI_BYTE, &blocks);
    MPI_Type_contiguous(int(bytes / block), blocks, &parts[0]);
    parts[1] = MPI_BYTE;
    int lengths[2] = {1, int(bytes % block)};
    MPI_Aint offsets[2] = {0, MPI_Aint(bytes / block * block)};
    MPI_Type_create_struct(2, lengths, offsets, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&blocks);
    MPI_Type_free(&parts[0]);
    count = 1;
    ours = true;
  }
  ~Message() {
    if (ours) MPI_Type_free(&type);
  }
  Message(Message const&) = delete;
  MPI_Datatype type = MPI_BYTE;
  int count = 0;

 private:
  bool ours = false;
};

// The exchanges of plain MPI that benchmarks compare with (mpi_plugin_baselines.cpp).
int pingpong(Comm c, void* p, std::int64_t bytes, int repeats);
int halo(Comm c, double* data, int const* sizes, MpiApi::HaloPart const* parts, int count, int packed, int repeats, void (*before)(void*),
         void* context, double* seconds);

}  // namespace asterism::comm::plugin
