// Peer: PETSc's MatMult (AIJ) and CG + GAMG on the 7-point Poisson matrix, through its public C interface.
// Built by bench/run.py where pkg-config finds PETSc; prints one JSON line.
#include <petscksp.h>
#include <petsctime.h>

int main(int argc, char** argv) {
  PetscInt n = 128, first, last;
  Mat A;
  Vec x, b;
  KSP ksp;
  PetscLogDouble t0, t1, setup[2], solve[2], mult;
  PetscInt its;
  PetscInitialize(&argc, &argv, NULL, NULL);
  PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL);
  MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n * n, n * n * n, 7, NULL, 6, NULL, &A);
  MatGetOwnershipRange(A, &first, &last);
  for (PetscInt i = first; i < last; ++i) {
    PetscInt const p = i / (n * n), q = i / n % n, r = i % n;
    PetscInt c[7], m = 0;
    PetscScalar v[7];
    c[m] = i, v[m++] = 6;
    if (p > 0) c[m] = i - n * n, v[m++] = -1;
    if (q > 0) c[m] = i - n, v[m++] = -1;
    if (r > 0) c[m] = i - 1, v[m++] = -1;
    if (r + 1 < n) c[m] = i + 1, v[m++] = -1;
    if (q + 1 < n) c[m] = i + n, v[m++] = -1;
    if (p + 1 < n) c[m] = i + n * n, v[m++] = -1;
    MatSetValues(A, 1, &i, m, c, v, INSERT_VALUES);
  }
  MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
  MatCreateVecs(A, &x, &b);
  VecSet(b, 1);
  VecSet(x, 1);
  MatMult(A, x, b);
  PetscTime(&t0);
  for (int i = 0; i < 20; ++i) MatMult(A, x, b);
  PetscTime(&t1);
  mult = (t1 - t0) / 20;
  VecSet(b, 1);
  for (int again = 0; again < 2; ++again) {
    PC pc;
    VecSet(x, 0);
    KSPCreate(PETSC_COMM_WORLD, &ksp);
    KSPSetOperators(ksp, A, A);
    KSPSetType(ksp, KSPCG);
    KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED);
    KSPGetPC(ksp, &pc);
    PCSetType(pc, PCGAMG);
    KSPSetTolerances(ksp, 1e-8, 0, 1e5, 1000);
    KSPSetFromOptions(ksp);
    PetscTime(&t0);
    KSPSetUp(ksp);
    PetscTime(&t1);
    setup[again] = t1 - t0;
    PetscTime(&t0);
    KSPSolve(ksp, b, x);
    PetscTime(&t1);
    solve[again] = t1 - t0;
    KSPGetIterationNumber(ksp, &its);
    KSPDestroy(&ksp);
  }
  PetscPrintf(PETSC_COMM_WORLD, "{\"peer\": \"petsc %d.%d\", \"spmv\": %g, \"setup\": [%g, %g], \"solve\": [%g, %g], \"iterations\": %d}\n",
              PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, mult, setup[0], setup[1], solve[0], solve[1], (int)its);
  PetscFinalize();
  return 0;
}
