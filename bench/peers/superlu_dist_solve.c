// Peer: SuperLU_DIST with its default options for a matrix in a file (bench/multigrid.py's write_for_peers writes it), right-hand side of
// random numbers, on the ranks of mpiexec. Built where its headers are found; prints one JSON line.
// Usage: superlu_dist_solve FILE REPEATS
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <superlu_ddefs.h>

static void* items(FILE* f, size_t size, size_t count) {
  void* out = SUPERLU_MALLOC(size * (count ? count : 1));
  if (!out || fread(out, size, count, f) != count) exit(2);
  return out;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  int const repeats = atoi(argv[2]);
  int ranks, me;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gridinfo_t grid;
  superlu_gridinit(MPI_COMM_WORLD, 1, ranks, &grid);  // few ranks: one row of them has no row reductions
  me = grid.iam;
  FILE* f = fopen(argv[1], "rb");
  if (!f) return 2;
  long long* sizes = items(f, 8, 4);
  int_t const n = (int_t)sizes[0];
  int* ptr = items(f, 4, (size_t)n + 1);
  int* col = items(f, 4, (size_t)sizes[1]);
  double* val = items(f, 8, (size_t)sizes[1]);
  int_t const first = n * me / ranks, end = n * (me + 1) / ranks, m = end - first, count = ptr[end] - ptr[first];
  double *numeric = calloc((size_t)repeats, 8), *solve = calloc((size_t)repeats, 8), worst = 0;
  for (int k = 0; k < repeats; ++k) {
    int_t* rows = intMalloc_dist(m + 1);
    int_t* columns = intMalloc_dist(count);
    double* values = doubleMalloc_dist(count);
    double* b = doubleMalloc_dist(m);
    double* right = doubleMalloc_dist(m);
    for (int_t i = 0; i <= m; ++i) rows[i] = ptr[first + i] - ptr[first];
    for (int_t p = 0; p < count; ++p) columns[p] = col[ptr[first] + p], values[p] = val[ptr[first] + p];
    srand(1);
    for (int_t i = 0; i < end; ++i) {
      double const v = rand() / (double)RAND_MAX - 0.5;
      if (i >= first) b[i - first] = right[i - first] = v;
    }
    SuperMatrix A;
    dCreate_CompRowLoc_Matrix_dist(&A, n, n, count, m, first, values, columns, rows, SLU_NR_loc, SLU_D, SLU_GE);
    superlu_dist_options_t options;
    set_default_options_dist(&options);
    options.IterRefine = NOREFINE;
    options.PrintStat = NO;
    dScalePermstruct_t scale;
    dLUstruct_t lu;
    dSOLVEstruct_t solve_struct;
    SuperLUStat_t stat;
    dScalePermstructInit(n, n, &scale);
    dLUstructInit(n, &lu);
    double error = 0;
    int info;
    PStatInit(&stat);
    pdgssvx(&options, &A, &scale, b, (int)m, 1, &grid, &lu, &solve_struct, &error, &stat, &info);
    if (info) return 3;
    numeric[k] = stat.utime[FACT];
    PStatFree(&stat);
    options.Fact = FACTORED;
    for (int again = 0; again < 2; ++again) {
      for (int_t i = 0; i < m; ++i) b[i] = right[i];
      PStatInit(&stat);
      pdgssvx(&options, &A, &scale, b, (int)m, 1, &grid, &lu, &solve_struct, &error, &stat, &info);
      solve[k] = stat.utime[SOLVE];
      PStatFree(&stat);
    }
    if (ranks == 1) {
      double r = 0, a = 0, sx = 0, sb = 0;
      for (int_t i = 0; i < n; ++i) {
        double s = right[i], row = 0;
        for (int p = ptr[i]; p < ptr[i + 1]; ++p) s -= val[p] * b[col[p]], row += fabs(val[p]);
        r = fmax(r, fabs(s)), a = fmax(a, row), sx = fmax(sx, fabs(b[i])), sb = fmax(sb, fabs(right[i]));
      }
      worst = r / (a * sx + sb);
    }
    dScalePermstructFree(&scale);
    dDestroy_LU(n, &grid, &lu);
    dLUstructFree(&lu);
    dSolveFinalize(&options, &solve_struct);
    Destroy_CompRowLoc_Matrix_dist(&A);
    SUPERLU_FREE(b);
    SUPERLU_FREE(right);
  }
  if (me == 0) {
    printf("{\"numeric\": [");
    for (int k = 0; k < repeats; ++k) printf("%s%.6g", k ? ", " : "", numeric[k]);
    printf("], \"solve\": [");
    for (int k = 0; k < repeats; ++k) printf("%s%.6g", k ? ", " : "", solve[k]);
    printf("]");
    if (ranks == 1) printf(", \"normwise_backward_error\": %.3g", worst);  // of all of x, which one rank has
    printf("}\n");
  }
  superlu_gridexit(&grid);
  MPI_Finalize();
  return 0;
}
