// Peer: PETSc's star forest between two ranks: ping-pong (broadcast there, reduction back) and set-up, with roots on rank 0
// and leaves on rank 1, through its public C interface. Built by bench/run.py where pkg-config finds PETSc; prints JSON lines.
//   mpiexec -n 2 petsc_sf -n 131072 -repeats 50 -rounds 5
#include <petscsf.h>
#include <petsctime.h>
#include <stdlib.h>

static double pingpong(PetscSF sf, PetscScalar* root, PetscScalar* leaf, MPI_Op op, PetscInt repeats) {
  PetscLogDouble t0, t1;
  MPI_Barrier(PETSC_COMM_WORLD);
  PetscTime(&t0);
  for (PetscInt i = 0; i < repeats; ++i) {
    PetscSFBcastBegin(sf, MPIU_SCALAR, root, leaf, MPI_REPLACE);
    PetscSFBcastEnd(sf, MPIU_SCALAR, root, leaf, MPI_REPLACE);
    PetscSFReduceBegin(sf, MPIU_SCALAR, leaf, root, op);
    PetscSFReduceEnd(sf, MPIU_SCALAR, leaf, root, op);
  }
  PetscTime(&t1);
  return (t1 - t0) / (2.0 * repeats);
}

int main(int argc, char** argv) {
  PetscInt n = 1, repeats = 100, rounds = 5;
  PetscMPIInt rank;
  PetscInitialize(&argc, &argv, NULL, NULL);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL);
  PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL);
  PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL);
  PetscScalar *root = calloc((size_t)n + 1, sizeof(PetscScalar)), *leaf = calloc(2 * (size_t)n + 1, sizeof(PetscScalar));
  PetscInt* order = malloc(sizeof(PetscInt) * (size_t)(n + 1));
  for (PetscInt i = 0; i < n; ++i) order[i] = i;
  srand(1);
  for (PetscInt i = n - 1; i > 0; --i) {
    PetscInt const j = rand() % (i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (int mixed = 0; mixed < 2; ++mixed) {
    PetscSF sf;
    PetscSFNode* remote = malloc(sizeof(PetscSFNode) * (size_t)(n + 1));
    PetscInt* local = malloc(sizeof(PetscInt) * (size_t)(n + 1));
    for (PetscInt i = 0; i < n; ++i) {
      remote[i].rank = 0;
      remote[i].index = mixed ? order[i] : i;
      local[i] = mixed ? 2 * i : i;
    }
    PetscPrintf(PETSC_COMM_WORLD, "{\"case\": \"%s\", \"setup\": [", mixed ? "permuted" : "contiguous");
    for (PetscInt r = 0; r < rounds; ++r) {
      PetscLogDouble t0, t1;
      PetscInt const times = 1 + 20000 / (n + 1);
      MPI_Barrier(PETSC_COMM_WORLD);
      PetscTime(&t0);
      for (PetscInt i = 0; i < times; ++i) {
        PetscSFCreate(PETSC_COMM_WORLD, &sf);
        PetscSFSetGraph(sf, rank ? 0 : n, rank ? n : 0, mixed ? local : NULL, PETSC_COPY_VALUES, remote, PETSC_COPY_VALUES);
        PetscSFSetUp(sf);
        if (i + 1 < times || r + 1 < rounds) PetscSFDestroy(&sf);
      }
      PetscTime(&t1);
      PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", r ? ", " : "", (t1 - t0) / times);
    }
    for (int sum = 0; sum < 2; ++sum) {
      pingpong(sf, root, leaf, sum ? MPI_SUM : MPI_REPLACE, repeats);
      PetscPrintf(PETSC_COMM_WORLD, "], \"%s\": [", sum ? "sum" : "replace");
      for (PetscInt r = 0; r < rounds; ++r)
        PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", r ? ", " : "", pingpong(sf, root, leaf, sum ? MPI_SUM : MPI_REPLACE, repeats));
    }
    PetscPrintf(PETSC_COMM_WORLD, "]}\n");
    PetscSFDestroy(&sf);
    free(remote);
    free(local);
  }
  PetscFinalize();
  return 0;
}
