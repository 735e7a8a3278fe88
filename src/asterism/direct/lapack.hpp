// The few BLAS and LAPACK routines that are used, for the dtypes that use them. Matrices are column-major.
#pragma once
#include <cstddef>

#include "asterism/base/complex.hpp"

#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
#define ASTERISM_BLAS(name) scipy_##name##_
#else
#define ASTERISM_BLAS(name) name##_
#endif

// Fortran wants the length of each text behind the last argument.
extern "C" {
#define ASTERISM_DECLARE(letter, T, R, WORK)                                                                                               \
  void ASTERISM_BLAS(letter##getrf)(int const* m, int const* n, T* a, int const* lda, int* pivots, int* info);                             \
  void ASTERISM_BLAS(letter##getrs)(char const* trans, int const* n, int const* nrhs, T const* a, int const* lda, int const* pivots, T* b, \
                                    int const* ldb, int* info, std::size_t);                                                               \
  void ASTERISM_BLAS(letter##getri)(int const* n, T* a, int const* lda, int const* pivots, T* work, int const* lwork, int* info);          \
  void ASTERISM_BLAS(letter##gecon)(char const* norm, int const* n, T const* a, int const* lda, R const* anorm, R* rcond, T* work,         \
                                    WORK* more_work, int* info, std::size_t);                                                              \
  void ASTERISM_BLAS(letter##laswp)(int const* n, T* a, int const* lda, int const* first, int const* last, int const* pivots,              \
                                    int const* increment);                                                                                 \
  void ASTERISM_BLAS(letter##trsm)(char const* side, char const* uplo, char const* trans, char const* diag, int const* m, int const* n,    \
                                   T const* alpha, T const* a, int const* lda, T* b, int const* ldb, std::size_t, std::size_t,             \
                                   std::size_t, std::size_t);                                                                              \
  void ASTERISM_BLAS(letter##gemm)(char const* transa, char const* transb, int const* m, int const* n, int const* k, T const* alpha,       \
                                   T const* a, int const* lda, T const* b, int const* ldb, T const* beta, T* c, int const* ldc,            \
                                   std::size_t, std::size_t);                                                                              \
  void ASTERISM_BLAS(letter##potrf)(char const* uplo, int const* n, T* a, int const* lda, int* info, std::size_t);                         \
  void ASTERISM_BLAS(letter##potri)(char const* uplo, int const* n, T* a, int const* lda, int* info, std::size_t);                         \
  void ASTERISM_BLAS(letter##pstrf)(char const* uplo, int const* n, T* a, int const* lda, int* pivots, int* rank, R const* tolerance,      \
                                    R* work, int* info, std::size_t);
ASTERISM_DECLARE(s, float, float, int)
ASTERISM_DECLARE(d, double, double, int)
ASTERISM_DECLARE(c, asterism::Complex<float>, float, float)
ASTERISM_DECLARE(z, asterism::Complex<double>, double, double)
#undef ASTERISM_DECLARE
#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
int scipy_openblas_get_num_threads();
void scipy_openblas_set_num_threads(int n);
#endif
}

namespace asterism::lapack {

/// Whether Threads below has a say: several threads may then call the library, each with one thread of its own.
#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
inline constexpr bool threads_are_ours = true;
#else
inline constexpr bool threads_are_ours = false;
#endif

/// While it lives the library's calls have so many threads. OpenBLAS has as many as there are cores otherwise, on each rank, and they
/// go on turning for some 30 ms after a call, beside whatever comes next. Of a system's BLAS the user says.
class Threads {
 public:
#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
  explicit Threads(int n) : before_(scipy_openblas_get_num_threads()) { scipy_openblas_set_num_threads(n); }
  ~Threads() { scipy_openblas_set_num_threads(before_); }
  Threads(Threads const&) = delete;
  Threads& operator=(Threads const&) = delete;

 private:
  int before_;
#else
  explicit Threads(int) {}
#endif
};

#define ASTERISM_DEFINE(letter, T, R, WORK)                                                                                  \
  /* P A = L U of m x n; > 0: the first step whose pivot is exactly zero, counted from 1 */                                  \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                                                               \
    int info = 0;                                                                                                            \
    ASTERISM_BLAS(letter##getrf)(&m, &n, a, &lda, pivots, &info);                                                            \
    return info;                                                                                                             \
  }                                                                                                                          \
  inline void getrs(char trans, int n, int nrhs, T const* a, int const* pivots, T* b) {                                      \
    int info = 0;                                                                                                            \
    ASTERISM_BLAS(letter##getrs)(&trans, &n, &nrhs, a, &n, pivots, b, &n, &info, 1);                                         \
  }                                                                                                                          \
  inline int getri(int n, T* a, int const* pivots, T* work, int lwork) {                                                     \
    int info = 0;                                                                                                            \
    ASTERISM_BLAS(letter##getri)(&n, a, &n, pivots, work, &lwork, &info);                                                    \
    return info;                                                                                                             \
  }                                                                                                                          \
  /* an estimate of 1 / (|A|_1 |A^-1|_1) from A's factors; work: 4 n values, more_work: 2 n */                               \
  inline R gecon(int n, T const* a, R norm, T* work, WORK* more_work) {                                                      \
    int info = 0;                                                                                                            \
    R rcond = 0;                                                                                                             \
    ASTERISM_BLAS(letter##gecon)("1", &n, a, &n, &norm, &rcond, work, more_work, &info, 1);                                  \
    return rcond;                                                                                                            \
  }                                                                                                                          \
  /* the exchanges of steps [first, last), counted from 0, in n columns */                                                   \
  inline void laswp(int n, T* a, int lda, int first, int last, int const* pivots) {                                          \
    int const from = first + 1, one = 1;                                                                                     \
    ASTERISM_BLAS(letter##laswp)(&n, a, &lda, &from, &last, pivots, &one);                                                   \
  }                                                                                                                          \
  /* B = L^-1 B, L unit lower triangular of m x m */                                                                         \
  inline void solve_lower(int m, int n, T const* L, T* B, int ld) {                                                          \
    T const one(1);                                                                                                          \
    ASTERISM_BLAS(letter##trsm)("L", "L", "N", "U", &m, &n, &one, L, &ld, B, &ld, 1, 1, 1, 1);                               \
  }                                                                                                                          \
  /* C -= A B, with B^H for B if trans_b is 'C' */                                                                           \
  inline void subtract_product(char trans_b, int m, int n, int k, T const* A, T const* B, T* C, int ld) {                    \
    T const one(1), minus_one(-1);                                                                                           \
    ASTERISM_BLAS(letter##gemm)("N", &trans_b, &m, &n, &k, &minus_one, A, &ld, B, &ld, &one, C, &ld, 1, 1);                  \
  }                                                                                                                          \
  /* B = op(A)^-1 B for side 'L' (A is m x m), B op(A)^-1 for 'R' (n x n) */                                                 \
  inline void trsm(char side, char uplo, char trans, char diag, int m, int n, T const* A, int lda, T* B, int ldb) {          \
    T const one(1);                                                                                                          \
    ASTERISM_BLAS(letter##trsm)(&side, &uplo, &trans, &diag, &m, &n, &one, A, &lda, B, &ldb, 1, 1, 1, 1);                    \
  }                                                                                                                          \
  /* C -= A op(B), C m x n, with k columns of A */                                                                           \
  inline void subtract_product(char trans_b, int m, int n, int k, T const* A, int lda, T const* B, int ldb, T* C, int ldc) { \
    T const one(1), minus_one(-1);                                                                                           \
    ASTERISM_BLAS(letter##gemm)("N", &trans_b, &m, &n, &k, &minus_one, A, &lda, B, &ldb, &one, C, &ldc, 1, 1);               \
  }                                                                                                                          \
  /* Cholesky in the lower triangle, L L^H; > 0: not positive definite */                                                    \
  inline int potrf(int n, T* a, int lda) {                                                                                   \
    int info = 0;                                                                                                            \
    ASTERISM_BLAS(letter##potrf)("L", &n, a, &lda, &info, 1);                                                                \
    return info;                                                                                                             \
  }                                                                                                                          \
  /* the inverse in the lower triangle, from that */                                                                         \
  inline int potri(int n, T* a, int lda) {                                                                                   \
    int info = 0;                                                                                                            \
    ASTERISM_BLAS(letter##potri)("L", &n, a, &lda, &info, 1);                                                                \
    return info;                                                                                                             \
  }                                                                                                                          \
  /* P^T A P = L L^H with the largest pivots first; ends where they are below the tolerance. The rank; work: 2 n reals */    \
  inline int pstrf(int n, T* a, int* order, R tolerance, R* work) {                                                          \
    int info = 0, rank = 0;                                                                                                  \
    ASTERISM_BLAS(letter##pstrf)("L", &n, a, &n, order, &rank, &tolerance, work, &info, 1);                                  \
    return rank;                                                                                                             \
  }
ASTERISM_DEFINE(s, float, float, int)
ASTERISM_DEFINE(d, double, double, int)
ASTERISM_DEFINE(c, Complex<float>, float, float)
ASTERISM_DEFINE(z, Complex<double>, double, double)
#undef ASTERISM_DEFINE

}  // namespace asterism::lapack
