// A hash of integers that is the same on all ranks and machines.
#pragma once
#include <cstdint>

namespace asterism {

/// The last step of splitmix64 (Steele, Lea, Flood 2014): one to one, and each bit of z changes about half of the bits.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace asterism
