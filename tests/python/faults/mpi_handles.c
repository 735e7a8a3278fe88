/* To be loaded before MPI: counts what this process has made of MPI's objects and not freed. */
#include <mpi.h>

static long comms, types, windows, plans;

#define COUNTED(result, counter, by) \
  int const error = result;          \
  if (error == MPI_SUCCESS) counter += by; \
  return error;

int MPI_Comm_dup(MPI_Comm c, MPI_Comm* n) { COUNTED(PMPI_Comm_dup(c, n), comms, 1) }
int MPI_Comm_split_type(MPI_Comm c, int type, int key, MPI_Info info, MPI_Comm* n) {
  COUNTED(PMPI_Comm_split_type(c, type, key, info, n), comms, 1)
}
int MPI_Dist_graph_create_adjacent(MPI_Comm c, int in, int const from[], int const fw[], int out, int const to[], int const tw[], MPI_Info info,
                                   int reorder, MPI_Comm* n) {
  COUNTED(PMPI_Dist_graph_create_adjacent(c, in, from, fw, out, to, tw, info, reorder, n), comms, 1)
}
int MPI_Comm_free(MPI_Comm* c) { COUNTED(PMPI_Comm_free(c), comms, -1) }
int MPI_Type_contiguous(int n, MPI_Datatype t, MPI_Datatype* made) { COUNTED(PMPI_Type_contiguous(n, t, made), types, 1) }
int MPI_Type_create_struct(int n, int const l[], MPI_Aint const d[], MPI_Datatype const t[], MPI_Datatype* made) {
  COUNTED(PMPI_Type_create_struct(n, l, d, t, made), types, 1)
}
int MPI_Type_free(MPI_Datatype* t) { COUNTED(PMPI_Type_free(t), types, -1) }
int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm c, void* base, MPI_Win* w) {
  COUNTED(PMPI_Win_allocate(bytes, unit, info, c, base, w), windows, 1)
}
int MPI_Win_free(MPI_Win* w) { COUNTED(PMPI_Win_free(w), windows, -1) }
#if MPI_VERSION >= 4
int MPI_Neighbor_alltoallw_init(void const* s, int const sn[], MPI_Aint const sd[], MPI_Datatype const st[], void* r, int const rn[],
                                MPI_Aint const rd[], MPI_Datatype const rt[], MPI_Comm c, MPI_Info info, MPI_Request* q) {
  COUNTED(PMPI_Neighbor_alltoallw_init(s, sn, sd, st, r, rn, rd, rt, c, info, q), plans, 1)
}
int MPI_Request_free(MPI_Request* q) { COUNTED(PMPI_Request_free(q), plans, -1) }
#endif

long asterism_test_handles(int which) { return which == 0 ? comms : which == 1 ? types : which == 2 ? windows : plans; }
