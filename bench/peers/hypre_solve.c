// Peer: hypre's BoomerAMG under its cg or gmres(30) through its public C interface, on one process, with the settings that its manual
// recommends: HMIS or PMIS coarsening, extended+i interpolation of at most 4 entries a row, threshold 0.25, and l1-Jacobi or symmetric
// l1-Gauss-Seidel. Built by bench/robustness.py where mpicc finds hypre; prints one JSON line.
//   hypre_solve FILE cg|gmres hmis|pmis l1-jacobi|l1-gs MOST
// FILE: as that of amgcl_solve.cpp, with a right-hand side.
#include <HYPRE.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* items(FILE* file, size_t size, size_t count) {
  void* out = malloc(size * count + 1);
  if (!out || fread(out, size, count, file) != count) exit(2);
  return out;
}

static HYPRE_IJVector vector(int n, HYPRE_BigInt const* indices, double const* values) {
  HYPRE_IJVector v;
  HYPRE_IJVectorCreate(MPI_COMM_WORLD, 0, n - 1, &v);
  HYPRE_IJVectorSetObjectType(v, HYPRE_PARCSR);
  HYPRE_IJVectorInitialize(v);
  HYPRE_IJVectorSetValues(v, n, indices, values);
  HYPRE_IJVectorAssemble(v);
  return v;
}

// The two methods have functions of their own, alike but for their names.
#define SOLVE_BY(METHOD, SET_MORE)                                                                                \
  do {                                                                                                            \
    HYPRE_ParCSR##METHOD##Create(MPI_COMM_WORLD, &krylov);                                                        \
    HYPRE_##METHOD##SetTol(krylov, 1e-8);                                                                         \
    HYPRE_##METHOD##SetMaxIter(krylov, most);                                                                     \
    SET_MORE;                                                                                                     \
    HYPRE_##METHOD##SetPrecond(krylov, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSolve,                                \
                               (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSetup, amg);                                  \
    HYPRE_ParCSR##METHOD##Setup(krylov, A, pb, px);                                                               \
    HYPRE_ParCSR##METHOD##Solve(krylov, A, pb, px);                                                               \
    HYPRE_##METHOD##GetNumIterations(krylov, &its);                                                               \
  } while (0)

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  MPI_Init(&argc, &argv);
  HYPRE_Init();
  FILE* file = fopen(argv[1], "rb");
  if (!file) return 2;
  long long* sizes = items(file, 8, 4);
  int n = (int)sizes[0], most = atoi(argv[5]);
  int* offsets = items(file, 4, (size_t)n + 1);
  int* columns = items(file, 4, (size_t)sizes[1]);
  double* values = items(file, 8, (size_t)sizes[1]);
  free(items(file, 8, (size_t)(sizes[0] * sizes[3])));  // the near-null space
  double* b = items(file, 8, (size_t)n);
  fclose(file);

  HYPRE_IJMatrix ij;
  HYPRE_IJMatrixCreate(MPI_COMM_WORLD, 0, n - 1, 0, n - 1, &ij);
  HYPRE_IJMatrixSetObjectType(ij, HYPRE_PARCSR);
  int* lengths = malloc(sizeof(int) * (size_t)n);
  HYPRE_BigInt* indices = malloc(sizeof(HYPRE_BigInt) * (size_t)n);
  HYPRE_BigInt* big = malloc(sizeof(HYPRE_BigInt) * (size_t)sizes[1] + 1);
  double* zero = calloc((size_t)n, 8);
  for (int i = 0; i < n; ++i) lengths[i] = offsets[i + 1] - offsets[i], indices[i] = i;
  for (long long p = 0; p < sizes[1]; ++p) big[p] = columns[p];
  HYPRE_IJMatrixSetRowSizes(ij, lengths);
  HYPRE_IJMatrixInitialize(ij);
  HYPRE_IJMatrixSetValues(ij, n, lengths, indices, big, values);
  HYPRE_IJMatrixAssemble(ij);
  HYPRE_IJVector right = vector(n, indices, b), left = vector(n, indices, zero);
  HYPRE_ParCSRMatrix A;
  HYPRE_ParVector pb, px;
  HYPRE_IJMatrixGetObject(ij, (void**)&A);
  HYPRE_IJVectorGetObject(right, (void**)&pb);
  HYPRE_IJVectorGetObject(left, (void**)&px);

  double const t0 = MPI_Wtime();
  HYPRE_Solver amg, krylov;
  HYPRE_BoomerAMGCreate(&amg);
  HYPRE_BoomerAMGSetCoarsenType(amg, strcmp(argv[3], "hmis") == 0 ? 10 : 8);
  HYPRE_BoomerAMGSetInterpType(amg, 6);
  HYPRE_BoomerAMGSetPMaxElmts(amg, 4);
  HYPRE_BoomerAMGSetStrongThreshold(amg, 0.25);
  HYPRE_BoomerAMGSetRelaxType(amg, strcmp(argv[4], "l1-jacobi") == 0 ? 18 : 8);
  HYPRE_BoomerAMGSetNumFunctions(amg, (int)sizes[2]);
  HYPRE_BoomerAMGSetMaxIter(amg, 1);
  HYPRE_BoomerAMGSetTol(amg, 0.0);
  HYPRE_BoomerAMGSetPrintLevel(amg, 0);
  int its = 0;
  if (strcmp(argv[2], "cg") == 0) SOLVE_BY(PCG, HYPRE_PCGSetTwoNorm(krylov, 1));
  else SOLVE_BY(GMRES, HYPRE_GMRESSetKDim(krylov, 30));
  double const seconds = MPI_Wtime() - t0;

  double* x = malloc(8 * (size_t)n);
  HYPRE_IJVectorGetValues(left, n, indices, x);
  double of_r = 0, of_b = 0;
  for (int i = 0; i < n; ++i) {
    double r = b[i];
    for (int p = offsets[i]; p < offsets[i + 1]; ++p) r -= values[p] * x[columns[p]];
    of_r += r * r, of_b += b[i] * b[i];
  }
  double const residual = sqrt(of_r / of_b);
  printf("{\"peer\": \"hypre %s\", \"iterations\": %d, \"seconds\": %.4f, \"residual\": ", HYPRE_RELEASE_VERSION, its, seconds);
  if (isfinite(residual)) printf("%.3e}\n", residual);
  else printf("null}\n");
  HYPRE_Finalize();
  MPI_Finalize();
  return 0;
}
