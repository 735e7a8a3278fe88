// Data to other ranks, put together piece by piece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/direct/entry.hpp"

namespace asterism::direct {

/// Parcels that grow.
class Outgoing {
 public:
  template <class U>
  void put(int rank, U const* items, std::size_t count) {
    comm::append<U>(of(rank), std::span<U const>(items, count));
  }
  void reserve(int rank, std::size_t bytes) { of(rank).reserve(bytes); }
  std::vector<comm::Parcel> take() { return std::move(parcels_); }

 private:
  std::vector<std::byte>& of(int rank) {
    if (place_.size() <= std::size_t(rank)) place_.resize(std::size_t(rank) + 1, -1);
    auto& place = place_[std::size_t(rank)];
    if (place < 0) place = int(parcels_.size()), parcels_.push_back({rank, {}});
    return parcels_[std::size_t(place)].data;
  }
  std::vector<int> place_;  // of each rank's parcel; -1: none
  std::vector<comm::Parcel> parcels_;
};

template <class U>
void read(std::byte const*& from, U* to, std::size_t count) {
  if (count > 0) std::memcpy(static_cast<void*>(to), from, count * sizeof(U));
  from += count * sizeof(U);
}

}  // namespace asterism::direct
