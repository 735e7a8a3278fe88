// Message tags that one object has for as long as it lives.
#pragma once
#include <cstdint>
#include <map>
#include <memory>

namespace asterism::comm {

class Communicator;

class HeldTags {
 public:
  /// See Communicator::hold_tags(). Collective.
  std::shared_ptr<int const> take(Communicator const& comm);

 private:
  std::map<std::uint64_t, std::weak_ptr<int const>> held_;  // by places, of this rank
  std::uint64_t next_ = 0, places_ = 0;                     // the same on all ranks
};

}  // namespace asterism::comm
