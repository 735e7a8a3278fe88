// Memory of vectors that the ranks of this machine can read.
#pragma once
#include <cstddef>
#include <string_view>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

enum class SharedVectors : std::uint8_t {
  automatic,  ///< if the system gives shared memory large pages, as other memory has them
  never,
  always,  ///< where ranks of this machine can open each other's memory
};
/// auto, 0, 1; an OptionError lists them otherwise.
SharedVectors shared_vectors_from_name(std::string_view name);
/// Of vectors made from now on; the option -shared_vectors sets it.
void set_shared_vectors(SharedVectors choice);

/// Uninitialised, for a vector of the communicator. A neighbour gathers straight out of a shared one: nothing is packed; if it
/// does not begin to in time it gets a copy. Not collective.
device::Array vector_array(Communicator const& comm, std::size_t bytes);

}  // namespace asterism::comm
