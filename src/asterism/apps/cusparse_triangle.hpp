// Triangular solves by cuSPARSE's SpSV, for `asterism bench`.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"

namespace asterism::apps {

/// A lower triangle in csr form with ones on its diagonal, which it does not list, on this process's GPU.
class CusparseTriangle {
 public:
  /// With a GPU open. An error of kind unsupported that says why where there is no cuSPARSE. Its analysis is made here.
  CusparseTriangle(std::vector<std::int32_t> const& offsets, std::vector<std::int32_t> const& columns, std::vector<double> const& values,
                   Dtype dtype, bool transposed);
  ~CusparseTriangle();
  CusparseTriangle(CusparseTriangle const&) = delete;
  CusparseTriangle& operator=(CusparseTriangle const&) = delete;

  /// Seconds of each of so many solves, the first one not counted; x: L^-1 b or L^-T b.
  std::vector<double> time(std::vector<double> const& b, int repeats, std::vector<double>& x);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::apps
