// The functions of cuSPARSE that are used, on the emulated device. ASTERISM_FAKE_CUSPARSE: slow (20 ms a product), or the name of a
// function that fails.
#include <algorithm>
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
  int fill = -1, diagonal = 0;  // of a triangle
};
/// What an analysis has seen.
struct Solve {
  Matrix const* matrix = nullptr;
  int operation = -1;
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

/// Of a lower triangle.
template <class T>
void solve(Matrix const m, bool transposed, T const* b, T* x) {
  auto const* const values = static_cast<T const*>(m.values);
  std::copy_n(b, m.rows, x);
  for (std::int64_t step = 0; step < m.rows; ++step) {
    auto const r = transposed ? m.rows - 1 - step : step;
    T diagonal(1);
    for (auto p = m.offsets[r]; p < m.offsets[r + 1]; ++p)
      if (m.columns[p] == r && m.diagonal == 0) diagonal = values[p];
      else if (m.columns[p] < r && !transposed) x[r] -= values[p] * x[m.columns[p]];
    x[r] /= diagonal;
    for (auto p = m.offsets[r]; transposed && p < m.offsets[r + 1]; ++p)
      if (m.columns[p] < r) x[m.columns[p]] -= values[p] * x[r];
  }
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
int cusparseSpMatSetAttribute(void* matrix, int attribute, void* value, std::size_t bytes) {
  if (bytes != sizeof(int)) return 3;
  (attribute == 0 ? static_cast<Matrix*>(matrix)->fill : static_cast<Matrix*>(matrix)->diagonal) = *static_cast<int*>(value);
  return status("cusparseSpMatSetAttribute");
}
int cusparseSpSV_createDescr(void** solve) { return *solve = new Solve, 0; }
int cusparseSpSV_destroyDescr(void* solve) { return delete static_cast<Solve*>(solve), 0; }
int cusparseSpSV_bufferSize(void*, int, void const*, void*, void*, void*, int, int, void*, std::size_t* bytes) {
  return *bytes = 64, status("cusparseSpSV_bufferSize");
}
int cusparseSpSV_analysis(void*, int operation, void const*, void* matrix, void*, void*, int, int, void* solve, void* buffer) {
  if (static_cast<Matrix*>(matrix)->fill != 0 || !buffer) return 3;
  *static_cast<Solve*>(solve) = {static_cast<Matrix*>(matrix), operation};
  return status("cusparseSpSV_analysis");
}
int cusparseSpSV_solve(void* handle, int operation, void const*, void* matrix, void* x, void* y, int type, int, void* descriptor) {
  auto const* const seen = static_cast<Solve*>(descriptor);
  Matrix const m = *static_cast<Matrix*>(matrix);
  Vector const in = *static_cast<Vector*>(x), out = *static_cast<Vector*>(y);
  if (seen->matrix != matrix || seen->operation != operation || m.type != type || in.type != type || out.type != type || in.size != m.rows)
    return 3;
  static_cast<Handle*>(handle)->stream->add([m, in, out, type, transposed = operation == 1] {
    auto const with = [&]<class T>(T) { solve(m, transposed, static_cast<T const*>(in.values), static_cast<T*>(out.values)); };
    if (type == 0) with(float());
    else if (type == 1) with(double());
    else if (type == 4) with(std::complex<float>());
    else with(std::complex<double>());
  });
  return status("cusparseSpSV_solve");
}
char const* cusparseGetErrorString(int status) { return status == 3 ? "invalid value" : "it was told to fail"; }
}
