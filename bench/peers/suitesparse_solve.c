// Peers: CHOLMOD's supernodal Cholesky and UMFPACK for a matrix in a file (bench/multigrid.py's write_for_peers writes it), right-hand side
// of random numbers. Built where the headers of SuiteSparse are found; prints one JSON line.
// Usage: suitesparse_solve FILE cholmod|umfpack metis|amd REPEATS
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <suitesparse/cholmod.h>
#include <suitesparse/umfpack.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* items(FILE* f, size_t size, size_t count) {
  void* out = malloc(size * (count ? count : 1));
  if (!out || fread(out, size, count, f) != count) exit(2);
  return out;
}

static int n, *ptr, *col;
static double* val;

/// ||b - A x|| / (||A|| ||x|| + ||b||) in the maximum norm.
static double backward_error(double const* b, double const* x) {
  double r = 0, a = 0, sx = 0, sb = 0;
  for (int i = 0; i < n; ++i) {
    double s = b[i], row = 0;
    for (int p = ptr[i]; p < ptr[i + 1]; ++p) s -= val[p] * x[col[p]], row += fabs(val[p]);
    r = fmax(r, fabs(s)), a = fmax(a, row), sx = fmax(sx, fabs(x[i])), sb = fmax(sb, fabs(b[i]));
  }
  return r / (a * sx + sb);
}

static void print_list(char const* name, double const* v, int count) {
  printf("\"%s\": [", name);
  for (int k = 0; k < count; ++k) printf("%s%.6g", k ? ", " : "", v[k]);
  printf("], ");
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  FILE* f = fopen(argv[1], "rb");
  if (!f) return 2;
  long long* sizes = items(f, 8, 4);
  n = (int)sizes[0];
  ptr = items(f, 4, (size_t)n + 1);
  col = items(f, 4, (size_t)sizes[1]);
  val = items(f, 8, (size_t)sizes[1]);
  int const metis = !strcmp(argv[3], "metis"), repeats = atoi(argv[4]);
  double* b = malloc(8 * (size_t)n);
  double* x = malloc(8 * (size_t)n);
  srand(1);
  for (int i = 0; i < n; ++i) b[i] = rand() / (double)RAND_MAX - 0.5;
  double *numeric = calloc((size_t)repeats, 8), *solve = calloc((size_t)repeats, 8), symbolic, error, entries = 0, stored = 0;
  if (!strcmp(argv[2], "cholmod")) {
    cholmod_common c;
    cholmod_start(&c);
    c.supernodal = CHOLMOD_SUPERNODAL;
    c.final_ll = 1;
    c.nmethods = 1;
    c.method[0].ordering = metis ? CHOLMOD_METIS : CHOLMOD_AMD;
    c.postorder = 1;
    cholmod_sparse A = {.nrow = (size_t)n, .ncol = (size_t)n, .nzmax = (size_t)sizes[1], .p = ptr, .i = col, .x = val, .stype = -1,
                        .itype = CHOLMOD_INT, .xtype = CHOLMOD_REAL, .dtype = CHOLMOD_DOUBLE, .sorted = 1, .packed = 1};
    cholmod_dense B = {.nrow = (size_t)n, .ncol = 1, .nzmax = (size_t)n, .d = (size_t)n, .x = b, .xtype = CHOLMOD_REAL,
                       .dtype = CHOLMOD_DOUBLE};
    cholmod_dense *X = NULL, *Y = NULL, *E = NULL;
    double t = now();
    cholmod_factor* L = cholmod_analyze(&A, &c);
    symbolic = now() - t;
    entries = c.lnz;
    for (int k = 0; k < repeats; ++k) {
      t = now();
      if (!cholmod_factorize(&A, L, &c) || c.status != CHOLMOD_OK) return 3;
      numeric[k] = now() - t;
      for (int twice = 0; twice < 2; ++twice) {
        t = now();
        cholmod_solve2(CHOLMOD_A, L, &B, NULL, &X, NULL, &Y, &E, &c);
        solve[k] = now() - t;
      }
    }
    stored = (double)L->xsize;
    error = backward_error(b, X->x);
  } else {
    // its columns are our rows, so it solves with the transpose
    double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
    umfpack_di_defaults(control);
    control[UMFPACK_IRSTEP] = 0;
    control[UMFPACK_ORDERING] = metis ? UMFPACK_ORDERING_METIS : UMFPACK_ORDERING_AMD;
    void *S = NULL, *N = NULL;
    double t = now();
    if (umfpack_di_symbolic(n, n, ptr, col, val, &S, control, info)) return 3;
    symbolic = now() - t;
    for (int k = 0; k < repeats; ++k) {
      if (N) umfpack_di_free_numeric(&N);
      t = now();
      if (umfpack_di_numeric(ptr, col, val, S, &N, control, info)) return 3;
      numeric[k] = now() - t;
      entries = info[UMFPACK_LNZ] + info[UMFPACK_UNZ];
      stored = entries;
      for (int twice = 0; twice < 2; ++twice) {
        t = now();
        umfpack_di_solve(UMFPACK_Aat, ptr, col, val, x, b, N, control, info);
        solve[k] = now() - t;
      }
    }
    error = backward_error(b, x);
  }
  printf("{\"symbolic\": %.6g, ", symbolic);
  print_list("numeric", numeric, repeats);
  print_list("solve", solve, repeats);
  printf("\"entries\": %.0f, \"stored\": %.0f, \"normwise_backward_error\": %.3g}\n", entries, stored, error);
  return 0;
}
