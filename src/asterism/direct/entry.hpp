// One entry of a sparse matrix.
#pragma once
#include <cstdint>

namespace asterism::direct {

template <class T>
struct Entry {
  std::int32_t row, column;
  T value;
};

}  // namespace asterism::direct
