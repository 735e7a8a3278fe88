// Peer: PETSc's products A P and P^T A P, symbolic and numeric phases apart, with the algorithm that is named, on matrices in PETSc's
// binary format, through its public C interface. Built by bench/run.py where pkg-config finds PETSc; prints one JSON line.
//   petsc_products -a A.bin -p P.bin -type AB -algorithm sorted -repeats 5
#include <petscmat.h>
#include <petsctime.h>

static Mat load(const char* option) {
  char file[PETSC_MAX_PATH_LEN] = "";
  PetscViewer in;
  Mat A;
  PetscOptionsGetString(NULL, NULL, option, file, sizeof file, NULL);
  PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &in);
  MatCreate(PETSC_COMM_WORLD, &A);
  MatSetType(A, MATAIJ);
  MatLoad(A, in);
  PetscViewerDestroy(&in);
  return A;
}

int main(int argc, char** argv) {
  PetscInt repeats = 5;
  char type[8] = "AB", algorithm[32] = "default";
  PetscInitialize(&argc, &argv, NULL, NULL);
  PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL);
  PetscOptionsGetString(NULL, NULL, "-type", type, sizeof type, NULL);
  PetscOptionsGetString(NULL, NULL, "-algorithm", algorithm, sizeof algorithm, NULL);
  Mat const A = load("-a"), P = load("-p");
  PetscPrintf(PETSC_COMM_WORLD, "{\"peer\": \"petsc %d.%d.%d\", \"runs\": [", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR,
              PETSC_VERSION_SUBMINOR);
  for (PetscInt r = 0; r < repeats; ++r) {
    PetscLogDouble t0, t1, t2, t3;
    Mat C;
    PetscTime(&t0);
    PetscCall(MatProductCreate(A, P, NULL, &C));
    PetscCall(MatProductSetType(C, strcmp(type, "AB") == 0 ? MATPRODUCT_AB : MATPRODUCT_PtAP));
    PetscCall(MatProductSetAlgorithm(C, algorithm));
    PetscCall(MatProductSetFill(C, PETSC_DEFAULT));
    PetscCall(MatProductSetFromOptions(C));
    PetscCall(MatProductSymbolic(C));
    PetscTime(&t1);
    PetscCall(MatProductNumeric(C));
    PetscTime(&t2);
    PetscCall(MatProductNumeric(C));
    PetscTime(&t3);
    PetscPrintf(PETSC_COMM_WORLD, "%s[%.6e, %.6e]", r ? ", " : "", t2 - t0, t3 - t2);
    MatDestroy(&C);
  }
  PetscPrintf(PETSC_COMM_WORLD, "]}\n");
  PetscFinalize();
  return 0;
}
