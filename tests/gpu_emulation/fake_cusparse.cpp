// The functions of cuSPARSE that are used, on the emulated device. ASTERISM_FAKE_CUSPARSE: slow (20 ms a product), or the name of a
// function that fails.
#include <chrono>
#include <complex>
#include <string_view>
#include <vector>

#include "cuda_runtime.h"

namespace {

struct Matrix {
  std::int64_t rows, cols, entries;
  std::int32_t const *offsets, *columns;
  void const* values;
  int type;
  bool prepared = false;
};
struct Vector {
  std::int64_t size;
  void* values;
  int type;
};
struct Handle {
  cudaStream_t stream = nullptr;
};

std::string_view wish() {
  auto const* const w = std::getenv("ASTERISM_FAKE_CUSPARSE");
  return w ? w : "";
}
int status(std::string_view function) { return wish() == function ? 7 : 0; }

template <class T>
void product(Matrix const m, T const* x, T* y) {
  for (std::int64_t r = 0; r < m.rows; ++r) {
    T s(0);
    for (auto p = m.offsets[r]; p < m.offsets[r + 1]; ++p) s += static_cast<T const*>(m.values)[p] * x[m.columns[p]];
    y[r] = s;
  }
  if (wish() == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

extern "C" {
int cusparseCreate(void** handle) { return *handle = new Handle, status("cusparseCreate"); }
int cusparseSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = static_cast<cudaStream_t>(stream);
  return 0;
}
int cusparseCreateCsr(void** matrix, std::int64_t rows, std::int64_t cols, std::int64_t entries, void* offsets, void* columns, void* values,
                      int offset_type, int column_type, int base, int type) {
  if (offset_type != 2 || column_type != 2 || base != 0) return 3;
  *matrix = new Matrix{rows, cols, entries, static_cast<std::int32_t*>(offsets), static_cast<std::int32_t*>(columns), values, type};
  return status("cusparseCreateCsr");
}
int cusparseDestroySpMat(void* matrix) { return delete static_cast<Matrix*>(matrix), 0; }
int cusparseCreateDnVec(void** vector, std::int64_t size, void* values, int type) { return *vector = new Vector{size, values, type}, 0; }
int cusparseDestroyDnVec(void* vector) { return delete static_cast<Vector*>(vector), 0; }
int cusparseSpMV_bufferSize(void*, int, void const*, void*, void*, void const*, void*, int, int, std::size_t* bytes) {
  return *bytes = 1024, status("cusparseSpMV_bufferSize");
}
int cusparseSpMV_preprocess(void*, int, void const*, void* matrix, void*, void const*, void*, int, int, void* buffer) {
  static_cast<Matrix*>(matrix)->prepared = buffer != nullptr;
  return status("cusparseSpMV_preprocess");
}
int cusparseSpMV(void* handle, int operation, void const* alpha, void* matrix, void* x, void const* beta, void* y, int type, int algorithm,
                 void* buffer) {
  Matrix const m = *static_cast<Matrix*>(matrix);
  Vector const in = *static_cast<Vector*>(x), out = *static_cast<Vector*>(y);
  bool const wide = type == 1 || type == 5;
  bool const one = wide ? *static_cast<double const*>(alpha) == 1 && *static_cast<double const*>(beta) == 0
                        : *static_cast<float const*>(alpha) == 1 && *static_cast<float const*>(beta) == 0;
  if (operation != 0 || algorithm != 3 || !buffer || !m.prepared || !one || m.type != type || in.type != type || out.type != type ||
      in.size != m.cols || out.size != m.rows)
    return 3;
  static_cast<Handle*>(handle)->stream->add([m, in, out, type] {
    auto const with = [&]<class T>(T) { product(m, static_cast<T const*>(in.values), static_cast<T*>(out.values)); };
    if (type == 0) with(float());
    else if (type == 1) with(double());
    else if (type == 4) with(std::complex<float>());
    else with(std::complex<double>());
  });
  return status("cusparseSpMV");
}
char const* cusparseGetErrorString(int status) { return status == 3 ? "invalid value" : "it was told to fail"; }
}
