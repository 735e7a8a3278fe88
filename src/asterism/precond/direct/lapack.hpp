// The few BLAS and LAPACK routines that are used, for the four dtypes.
#pragma once
#include "asterism/base/complex.hpp"

#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
#define ASTERISM_BLAS(name) scipy_##name##_
#else
#define ASTERISM_BLAS(name) name##_
#endif

extern "C" {
#define ASTERISM_DECLARE(letter, T)                                                                            \
  void ASTERISM_BLAS(letter##getrf)(int const* m, int const* n, T* a, int const* lda, int* pivots, int* info); \
  void ASTERISM_BLAS(letter##getri)(int const* n, T* a, int const* lda, int const* pivots, T* work, int const* lwork, int* info);
ASTERISM_DECLARE(s, float)
ASTERISM_DECLARE(d, double)
ASTERISM_DECLARE(c, asterism::Complex<float>)
ASTERISM_DECLARE(z, asterism::Complex<double>)
#undef ASTERISM_DECLARE
#if defined(ASTERISM_BLAS_PREFIX_SCIPY)
int scipy_openblas_get_num_threads();
void scipy_openblas_set_num_threads(int n);
#endif
}

namespace asterism::lapack {

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

#define ASTERISM_DEFINE(letter, T)                                        \
  inline int getrf(int n, T* a, int* pivots) {                            \
    int info = 0;                                                         \
    ASTERISM_BLAS(letter##getrf)(&n, &n, a, &n, pivots, &info);           \
    return info;                                                          \
  }                                                                       \
  inline int getri(int n, T* a, int const* pivots, T* work, int lwork) {  \
    int info = 0;                                                         \
    ASTERISM_BLAS(letter##getri)(&n, a, &n, pivots, work, &lwork, &info); \
    return info;                                                          \
  }
ASTERISM_DEFINE(s, float)
ASTERISM_DEFINE(d, double)
ASTERISM_DEFINE(c, Complex<float>)
ASTERISM_DEFINE(z, Complex<double>)
#undef ASTERISM_DEFINE

}  // namespace asterism::lapack
