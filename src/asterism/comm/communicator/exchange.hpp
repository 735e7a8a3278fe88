// Data to ranks that do not know they will get any.
#pragma once
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

struct Parcel {
  int rank;
  std::vector<std::byte> data;
};

/// How a rank learns how many parcels come. The result is the same.
enum class Discovery : std::uint8_t {
  automatic,       ///< by the number of ranks
  nbx,             ///< an MPI_Ibarrier that is entered when all of one's own have arrived: no memory of the order of the ranks
  reduce_scatter,  ///< MPI_Reduce_scatter_block of a flag for each rank
  allreduce,       ///< MPI_Allreduce of the same
};
/// auto, nbx, reduce_scatter, allreduce; an OptionError lists them otherwise.
Discovery discovery_from_name(std::string_view name);
/// Of all exchanges from now on, on all ranks; auto at first. The option -sf_discovery sets it.
void set_discovery(Discovery discovery);

/// Delivers each parcel; returns what others sent here, sorted by rank. At most one parcel per
/// destination; a parcel to oneself does not pass through MPI. Collective. By NBX, the non-blocking
/// consensus of Hoefler, Siebert and Lumsdaine (PPoPP 2010), memory and messages are of the order of the own edges.
/// meanwhile(): called once what goes out is on its way.
std::vector<Parcel> exchange(Communicator const& comm, std::vector<Parcel> outgoing, std::function<void()> const& meanwhile = [] {});

/// Bytes of a span of trivially copyable items, appended.
template <class T>
void append(std::vector<std::byte>& out, std::span<T const> items) {
  auto const bytes = std::as_bytes(items);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
std::vector<T> items_of(std::vector<std::byte> const& data) {
  std::vector<T> out(data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), data.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace asterism::comm
