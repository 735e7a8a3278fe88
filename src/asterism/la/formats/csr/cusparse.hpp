// Products of csr blocks on a GPU by NVIDIA's cuSPARSE, where that is there and was measured to take less time than our kernel.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"
#include "asterism/la/formats/csr/csr_format.kernels.hpp"

namespace asterism::la {

/// -mat_gpu_product: by measurement, our kernel, or cuSPARSE (an error where it is not there).
enum class GpuProduct : std::uint8_t { automatic, own, cusparse };
void set_gpu_product(GpuProduct choice);
GpuProduct gpu_product();
/// With a GPU open: an error where what was chosen is not there. Ranks without entries ask for no product, so all ask here.
void require_gpu_product();

/// What was measured for blocks of one shape; later ones take it from here.
struct MeasuredProduct {
  Dtype dtype;
  std::int32_t rows, cols;
  std::int64_t entries;
  double own_seconds, cusparse_seconds;
  bool cusparse_taken;
};
std::vector<MeasuredProduct> measured_products();

/// Of one block. cuSPARSE's descriptors are made by the queue that needs them first.
class CusparseProduct {
 public:
  /// nullptr: our kernel is to be taken, since that was chosen, the block is small, or there is no cuSPARSE.
  static std::shared_ptr<CusparseProduct> of(Dtype dtype, std::int32_t rows, std::int32_t cols, std::span<std::int64_t const> offsets);
  ~CusparseProduct();
  CusparseProduct(CusparseProduct const&) = delete;
  CusparseProduct& operator=(CusparseProduct const&) = delete;

  /// y = A x, by a GPU's queue, with the same bits every time. rows: what resolves to CsrRows<T>.
  template <class T>
  static void submit(std::shared_ptr<CusparseProduct> const& self, device::Queue const& queue, auto const& rows, device::Array const& x,
                     device::Array const& y) {
    device::submit(queue, &CusparseProduct::run<T>, self, rows, device::read<std::int32_t>(self->offsets_), device::read<T>(x),
                   device::write<T>(y));
  }

 private:
  CusparseProduct(GpuProduct choice, Dtype dtype, std::int32_t rows, std::int32_t cols, std::int64_t entries);
  template <class T>
  static void run(device::Executor& executor, std::shared_ptr<CusparseProduct> self, kernel::CsrRows<T> rows, std::int32_t const* offsets,
                  T const* x, T* y);
  template <class T>
  bool decide(device::Executor const& executor, kernel::CsrRows<T> const& rows, std::int32_t const* offsets, T const* x);
  struct OfStream;
  template <class T>
  OfStream& of_stream(void* stream, kernel::CsrRows<T> const& rows, std::int32_t const* offsets, T const* x);

  GpuProduct choice_;
  Dtype dtype_;
  std::int32_t rows_, cols_;
  std::int64_t entries_;
  device::Array offsets_;  // int32
  // the workers'
  std::mutex mutex_;
  std::optional<bool> taken_;
  std::map<void*, std::unique_ptr<OfStream>> streams_;
};

}  // namespace asterism::la
