// Peer: PETSc's MatMult in its formats (-mat_type aij, sell, ...) on a matrix in PETSc's binary format, through its
// public C interface. Built by bench/run.py where pkg-config finds PETSc; prints one JSON line.
//   petsc_spmv -f matrix.bin -repeats 9 -inner 5 [-mat_type sell]
#include <petscmat.h>
#include <petsctime.h>

int main(int argc, char** argv) {
  char file[PETSC_MAX_PATH_LEN] = "";
  PetscInt repeats = 5, inner = 1;
  PetscViewer in;
  Mat A, B;
  Vec x, y;
  MatType type;
  PetscInitialize(&argc, &argv, NULL, NULL);
  PetscOptionsGetString(NULL, NULL, "-f", file, sizeof file, NULL);
  PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL);
  PetscOptionsGetInt(NULL, NULL, "-inner", &inner, NULL);
  char format[64] = "aij";
  PetscOptionsGetString(NULL, NULL, "-format", format, sizeof format, NULL);
  PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &in);
  MatCreate(PETSC_COMM_WORLD, &A);
  MatSetType(A, MATAIJ);
  MatLoad(A, in);
  if (strcmp(format, MATSBAIJ) == 0) MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE);
  MatConvert(A, format, MAT_INITIAL_MATRIX, &B);
  MatGetType(B, &type);
  MatCreateVecs(B, &x, &y);
  VecSetRandom(x, NULL);
  MatMult(B, x, y);
  PetscPrintf(PETSC_COMM_WORLD, "{\"peer\": \"petsc %d.%d %s\", \"seconds\": [", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, type);
  for (PetscInt r = 0; r < repeats; ++r) {
    PetscLogDouble t0, t1;
    PetscTime(&t0);
    for (PetscInt i = 0; i < inner; ++i) MatMult(B, x, y);
    PetscTime(&t1);
    PetscPrintf(PETSC_COMM_WORLD, "%s%.6e", r ? ", " : "", (t1 - t0) / inner);
  }
  PetscPrintf(PETSC_COMM_WORLD, "]}\n");
  PetscFinalize();
  return 0;
}
