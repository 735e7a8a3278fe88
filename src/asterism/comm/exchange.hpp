// Data to ranks that do not know they will get any.
#pragma once
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "asterism/comm/communicator.hpp"

namespace asterism::comm {

struct Parcel {
  int rank;
  std::vector<std::byte> data;
};

/// Delivers each parcel; returns what others sent here, sorted by rank. At most one parcel per
/// destination; a parcel to oneself does not pass through MPI. Collective; non-blocking consensus
/// (Hoefler, Siebert, Lumsdaine, PPoPP 2010): memory and messages of the order of the own edges.
std::vector<Parcel> exchange(Communicator const& comm, std::vector<Parcel> outgoing);

/// Bytes of a span of trivially copyable items, appended.
template <class T>
void append(std::vector<std::byte>& out, std::span<T const> items) {
  auto const at = out.size();
  out.resize(at + items.size_bytes());
  if (!items.empty()) std::memcpy(out.data() + at, items.data(), items.size_bytes());
}

template <class T>
std::vector<T> items_of(std::vector<std::byte> const& data) {
  std::vector<T> out(data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), data.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace asterism::comm
