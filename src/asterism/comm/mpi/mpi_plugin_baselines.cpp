// Exchanges as a program of plain MPI writes them, for the benchmarks: a ping-pong, a halo of a grid packed or by MPI's datatypes.
#include <vector>

#include "asterism/comm/mpi/mpi_plugin.hpp"

namespace asterism::comm::plugin {

int pingpong(Comm c, void* p, std::int64_t bytes, int repeats) {
  int rank = 0;
  MPI_Comm_rank(comm(c), &rank);
  Message const m(bytes);
  for (int i = 0; i < repeats; ++i) {
    if (rank == 0) MPI_Send(p, m.count, m.type, 1, 7, comm(c));
    if (rank <= 1)
      if (int const e = MPI_Recv(p, m.count, m.type, 1 - rank, 7, comm(c), MPI_STATUS_IGNORE)) return e;
    if (rank == 1) MPI_Send(p, m.count, m.type, 0, 7, comm(c));
  }
  return MPI_SUCCESS;
}

namespace {

/// Between a part of a box and a buffer.
template <bool Pack>
void move_part(double* data, int const* sizes, int const* low, int const* part, double* buffer) {
  for (int i = 0; i < part[0]; ++i)
    for (int j = 0; j < part[1]; ++j) {
      double* const row = data + (std::int64_t(low[0] + i) * sizes[1] + low[1] + j) * sizes[2] + low[2];
      if constexpr (Pack) std::memcpy(buffer, row, std::size_t(part[2]) * sizeof(double));
      else std::memcpy(row, buffer, std::size_t(part[2]) * sizeof(double));
      buffer += part[2];
    }
}

}  // namespace

int halo(Comm c, double* data, int const* sizes, MpiApi::HaloPart const* parts, int count, int packed, int repeats, void (*before)(void*),
         void* context, double* seconds) {
  auto const n = std::size_t(count);
  std::vector<MPI_Datatype> send_types(n), receive_types(n);
  std::vector<std::vector<double>> out(n), in(n);
  std::vector<MPI_Request> requests(2 * n);
  for (std::size_t p = 0; p < n; ++p) {
    MPI_Type_create_subarray(3, sizes, parts[p].sizes, parts[p].send_low, MPI_ORDER_C, MPI_DOUBLE, &send_types[p]);
    MPI_Type_create_subarray(3, sizes, parts[p].sizes, parts[p].receive_low, MPI_ORDER_C, MPI_DOUBLE, &receive_types[p]);
    MPI_Type_commit(&send_types[p]);
    MPI_Type_commit(&receive_types[p]);
    auto const length = std::size_t(parts[p].sizes[0]) * std::size_t(parts[p].sizes[1]) * std::size_t(parts[p].sizes[2]);
    out[p].resize(length);
    in[p].resize(length);
  }
  int e = MPI_SUCCESS;
  *seconds = 0;
  for (int i = 0; i < repeats && !e; ++i) {
    before(context);
    MPI_Barrier(comm(c));
    double const start = MPI_Wtime();
    for (std::size_t p = 0; p < n; ++p) {
      if (packed) MPI_Irecv(in[p].data(), int(in[p].size()), MPI_DOUBLE, parts[p].rank, 8, comm(c), &requests[p]);
      else MPI_Irecv(data, 1, receive_types[p], parts[p].rank, 8, comm(c), &requests[p]);
    }
    for (std::size_t p = 0; p < n; ++p) {
      if (packed) {
        move_part<true>(data, sizes, parts[p].send_low, parts[p].sizes, out[p].data());
        MPI_Isend(out[p].data(), int(out[p].size()), MPI_DOUBLE, parts[p].rank, 8, comm(c), &requests[n + p]);
      } else {
        MPI_Isend(data, 1, send_types[p], parts[p].rank, 8, comm(c), &requests[n + p]);
      }
    }
    e = MPI_Waitall(2 * count, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t p = 0; packed && p < n; ++p) move_part<false>(data, sizes, parts[p].receive_low, parts[p].sizes, in[p].data());
    *seconds += (MPI_Wtime() - start) / repeats;
  }
  for (std::size_t p = 0; p < n; ++p) {
    MPI_Type_free(&send_types[p]);
    MPI_Type_free(&receive_types[p]);
  }
  return e;
}

}  // namespace asterism::comm::plugin
