// What must be the same on all ranks of a call.
#pragma once
#include <span>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

struct Fact {
  std::string name, value;
};

/// An error on all ranks, with the first names that have different values, or that not all ranks give, and the values. `call`: for the
/// error. Collective; a message of 8 bytes where they are the same.
void require_same(Communicator const& comm, char const* call, std::span<Fact const> facts);

}  // namespace asterism::comm
