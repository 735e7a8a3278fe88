// A number of a row, column or entry as an index of an array.
#pragma once
#include <cstddef>
#include <cstdint>

namespace asterism::direct {

inline std::size_t at(std::int64_t i) { return std::size_t(i); }

}  // namespace asterism::direct
