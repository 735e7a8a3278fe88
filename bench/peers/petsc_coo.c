// Peer: PETSc's MatSetPreallocationCOO and MatSetValuesCOO for trilinear elements on e^3 cells, cells dealt to the ranks by slabs, through
// its public C interface. Built by bench/run.py where pkg-config finds PETSc; prints one JSON line.
//   petsc_coo -e 64 -repeats 5
#include <petscmat.h>
#include <petsctime.h>

int main(int argc, char** argv) {
  PetscInt e = 64, repeats = 5;
  PetscMPIInt rank, size;
  PetscInitialize(&argc, &argv, NULL, NULL);
  PetscOptionsGetInt(NULL, NULL, "-e", &e, NULL);
  PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &size);
  PetscInt const n = e + 1, first = e * rank / size, last = e * (rank + 1) / size, count = (last - first) * e * e * 64;
  PetscInt *i, *j;
  PetscScalar* v;
  PetscMalloc3(count, &i, count, &j, count, &v);
  PetscInt rows = n * n * n / size + (rank < n * n * n % size);
  Mat A;
  double setup[3];
  PetscPrintf(PETSC_COMM_WORLD, "{\"peer\": \"petsc %d.%d\", \"values\": [", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR);
  for (int again = 0; again < 3; ++again) {
    PetscLogDouble t0, t1;
    PetscInt at = 0;
    for (PetscInt z = first; z < last; ++z)
      for (PetscInt y = 0; y < e; ++y)
        for (PetscInt x = 0; x < e; ++x)
          for (int a = 0; a < 8; ++a)
            for (int b = 0; b < 8; ++b, ++at) {
              i[at] = ((z + a / 4) * n + y + a / 2 % 2) * n + x + a % 2;
              j[at] = ((z + b / 4) * n + y + b / 2 % 2) * n + x + b % 2;
              v[at] = 1 + at % 7;
            }
    MatCreate(PETSC_COMM_WORLD, &A);
    MatSetSizes(A, rows, rows, n * n * n, n * n * n);
    MatSetType(A, MATAIJ);
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t0);
    MatSetPreallocationCOO(A, count, i, j);
    MPI_Barrier(PETSC_COMM_WORLD);
    PetscTime(&t1);
    setup[again] = t1 - t0;
    for (PetscInt r = 0; r < repeats; ++r) {
      PetscTime(&t0);
      MatSetValuesCOO(A, v, INSERT_VALUES);
      MPI_Barrier(PETSC_COMM_WORLD);
      PetscTime(&t1);
      PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", again || r ? ", " : "", t1 - t0);
    }
    if (again < 2) MatDestroy(&A);
  }
  MatInfo info;
  PetscReal norm;
  MatGetInfo(A, MAT_GLOBAL_SUM, &info);
  MatNorm(A, NORM_FROBENIUS, &norm);
  PetscPrintf(PETSC_COMM_WORLD, "], \"setup\": [%.6e, %.6e, %.6e], \"nnz\": %.0f, \"norm\": %.15e}\n", setup[0], setup[1], setup[2],
              info.nz_used, (double)norm);
  PetscFinalize();
  return 0;
}
