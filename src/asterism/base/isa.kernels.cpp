// Compiled like the kernels: says which instructions they may use. Data only, nothing here runs.
extern "C" {
extern const bool asterism_kernels_use_avx512;
extern const bool asterism_kernels_use_avx2;
extern const char asterism_kernels_arch[];
#if defined(__AVX512F__)
const bool asterism_kernels_use_avx512 = true;
#else
const bool asterism_kernels_use_avx512 = false;
#endif
#if defined(__AVX2__)
const bool asterism_kernels_use_avx2 = true;
#else
const bool asterism_kernels_use_avx2 = false;
#endif
const char asterism_kernels_arch[] = ASTERISM_ARCH_NAME;
}
