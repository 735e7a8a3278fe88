// Peer: PETSc's insertion without preallocation (MatSetValues into a hash table, then MatAssemblyEnd) for trilinear elements on e^3 cells, 8 x 8
// values a call, cells dealt to the ranks by slabs, through its public C interface. Built by bench/run.py where pkg-config finds PETSc; prints
// one JSON line: the first matrix and, where the pattern is known, the same values again.
//   petsc_insert -e 64 -repeats 3
#include <petscmat.h>
#include <petsctime.h>

static void insert(Mat A, PetscInt elements, PetscInt const* nodes, PetscScalar const* values) {
  for (PetscInt k = 0; k < elements; ++k) MatSetValues(A, 8, nodes + 8 * k, 8, nodes + 8 * k, values + 64 * k, ADD_VALUES);
  MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
}

int main(int argc, char** argv) {
  PetscInt e = 64, repeats = 3;
  PetscMPIInt rank, size;
  PetscInitialize(&argc, &argv, NULL, NULL);
  PetscOptionsGetInt(NULL, NULL, "-e", &e, NULL);
  PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &size);
  PetscInt const n = e + 1, first = e * rank / size, last = e * (rank + 1) / size, elements = (last - first) * e * e;
  PetscInt* nodes;
  PetscScalar* v;
  PetscMalloc2(8 * elements, &nodes, 64 * elements, &v);
  PetscInt at = 0;
  for (PetscInt z = first; z < last; ++z)
    for (PetscInt y = 0; y < e; ++y)
      for (PetscInt x = 0; x < e; ++x)
        for (int a = 0; a < 8; ++a, ++at) nodes[at] = ((z + a / 4) * n + y + a / 2 % 2) * n + x + a % 2;
  for (at = 0; at < 64 * elements; ++at) v[at] = 1 + at % 7;
  PetscInt const rows = n * n * n / size + (rank < n * n * n % size);
  Mat A;
  PetscPrintf(PETSC_COMM_WORLD, "{\"peer\": \"petsc %d.%d\", \"seconds\": [", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR);
  PetscLogDouble t[3], again[64];
  for (PetscInt r = 0; r < repeats; ++r) {
    MatCreate(PETSC_COMM_WORLD, &A);
    MatSetSizes(A, rows, rows, n * n * n, n * n * n);
    MatSetType(A, MATAIJ);
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t[0]);
    MatSetUp(A);
    insert(A, elements, nodes, v);
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t[1]);
    MatZeroEntries(A);
    insert(A, elements, nodes, v);
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t[2]);
    PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", r ? ", " : "", t[1] - t[0]);
    again[r < 64 ? r : 63] = t[2] - t[1];
    if (r + 1 < repeats) MatDestroy(&A);
  }
  MatInfo info;
  PetscReal norm;
  MatGetInfo(A, MAT_GLOBAL_SUM, &info);
  MatNorm(A, NORM_FROBENIUS, &norm);
  PetscPrintf(PETSC_COMM_WORLD, "], \"again\": [");
  for (PetscInt r = 0; r < repeats && r < 64; ++r) PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", r ? ", " : "", again[r]);
  PetscPrintf(PETSC_COMM_WORLD, "], \"nnz\": %.0f, \"norm\": %.15e}\n", info.nz_used, (double)norm);
  PetscFinalize();
  return 0;
}
