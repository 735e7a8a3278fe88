// NVIDIA's cuSPARSE, opened at run time.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>

#include "asterism/base/complex.hpp"
#include "asterism/device/gpu/vendor_library.hpp"

namespace asterism::la {

/// The part of cuSPARSE 12 and 13 that is used (NVIDIA, cuSPARSE documentation, Generic APIs). Its header is not needed: it comes with
/// the toolkit, while the library comes with many packages. tests/cpp/la/cusparse_constants.cpp compares the numbers with it.
struct Cusparse {
  using Status = int;
  static constexpr int non_transpose = 0, transpose = 1, index_32 = 2, base_zero = 0;
  static constexpr int deterministic_csr = 3;  // CUSPARSE_SPMV_CSR_ALG2: the same bits in every run
  static constexpr int fill_mode = 0, diagonal_type = 1, lower = 0, unit = 1, solve_default = 0;
  device::gpu::VendorLibrary library{{"libcusparse.so.12", "libcusparse.so"}, "ASTERISM_CUSPARSE"};
  Status (*create)(void** handle) = nullptr;
  Status (*set_stream)(void* handle, void* stream) = nullptr;
  Status (*create_csr)(void** matrix, std::int64_t rows, std::int64_t cols, std::int64_t entries, void* offsets, void* columns,
                       void* values, int offset_type, int column_type, int base, int value_type) = nullptr;
  Status (*destroy_matrix)(void* matrix) = nullptr;
  Status (*set_attribute)(void* matrix, int attribute, void* value, std::size_t bytes) = nullptr;
  Status (*create_vector)(void** vector, std::int64_t size, void* values, int value_type) = nullptr;
  Status (*destroy_vector)(void* vector) = nullptr;
  using Product = Status(void* handle, int operation, void const* alpha, void* matrix, void* x, void const* beta, void* y, int type,
                         int algorithm, void* buffer);
  Status (*buffer_size)(void* handle, int operation, void const* alpha, void* matrix, void* x, void const* beta, void* y, int type,
                        int algorithm, std::size_t* bytes) = nullptr;
  Product *preprocess = nullptr, *multiply = nullptr;
  // of triangular solves
  Status (*create_solve)(void** solve) = nullptr;
  Status (*destroy_solve)(void* solve) = nullptr;
  Status (*solve_buffer_size)(void* handle, int operation, void const* alpha, void* matrix, void* x, void* y, int type, int algorithm,
                              void* solve, std::size_t* bytes) = nullptr;
  Status (*analyse)(void* handle, int operation, void const* alpha, void* matrix, void* x, void* y, int type, int algorithm, void* solve,
                    void* buffer) = nullptr;
  Status (*solve)(void* handle, int operation, void const* alpha, void* matrix, void* x, void* y, int type, int algorithm,
                  void* solve) = nullptr;
  char const* (*error_text)(Status) = nullptr;

  void* handle = nullptr;
  std::mutex mutex;  ///< of the handle
  std::string why_not;

  Cusparse();
  explicit operator bool() const { return handle != nullptr; }
  /// An error that names the call unless the status is 0.
  void check(Status status, char const* call) const;
};

/// Once a GPU is open.
Cusparse& cusparse();

template <class T>
constexpr int value_type() {  // cudaDataType
  constexpr bool wide = sizeof(real_t<T>) == 8;
  return is_complex_v<T> ? (wide ? 5 : 4) : wide ? 1 : 0;
}

/// A dense vector's descriptor.
class CusparseVector {
 public:
  template <class T>
  CusparseVector(std::int64_t size, T const* values) {
    cusparse().check(cusparse().create_vector(&vector_, size, const_cast<T*>(values), value_type<T>()), "cusparseCreateDnVec");
  }
  ~CusparseVector() { cusparse().destroy_vector(vector_); }
  CusparseVector(CusparseVector const&) = delete;
  CusparseVector& operator=(CusparseVector const&) = delete;
  void* get() const { return vector_; }

 private:
  void* vector_ = nullptr;
};

}  // namespace asterism::la
