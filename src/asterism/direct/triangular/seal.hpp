// Messages that carry the number of their solve and a checksum, so that a lost or a corrupted one is found and named.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "asterism/base/format.hpp"

namespace asterism::direct {

struct Seal {
  std::uint64_t solve = 0, checksum = 0;
};

/// FNV-1a (Fowler, Noll and Vo), 64 bits, of the data and the number of the solve.
inline std::uint64_t checksum_of(std::span<std::byte const> data, std::uint64_t solve) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto const mix = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (auto const b : data) mix(std::uint64_t(b));
  for (int i = 0; i < 8; ++i) mix((solve >> (8 * i)) & 0xff);
  return hash;
}

/// The data with their seal behind them.
inline void seal(std::span<std::byte const> data, std::uint64_t solve, std::vector<std::byte>& out) {
  out.assign(data.begin(), data.end());
  Seal const s{solve, checksum_of(data, solve)};
  auto const* bytes = reinterpret_cast<std::byte const*>(&s);
  out.insert(out.end(), bytes, bytes + sizeof s);
}

/// What is wrong with a sealed message of that solve; empty: nothing.
inline std::string broken_seal(std::span<std::byte const> sealed, std::uint64_t solve) {
  if (sealed.size() < sizeof(Seal)) return format("has {} bytes, less than its seal", sealed.size());
  auto const data = sealed.first(sealed.size() - sizeof(Seal));
  Seal s;
  std::memcpy(&s, sealed.data() + data.size(), sizeof s);
  if (auto const sum = checksum_of(data, s.solve); sum != s.checksum)
    return format("is corrupt: its checksum is {}, not {}", sum, s.checksum);
  if (s.solve != solve) return format("is lost: solve {} found the one of solve {}", solve, s.solve);
  return {};
}

}  // namespace asterism::direct
