#include "asterism/comm/communicator/held_tags.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/mpi/batch.hpp"

namespace asterism::comm {

std::shared_ptr<int const> HeldTags::take(Communicator const& comm) {
  constexpr int above = Communicator::failure_tag, together = Communicator::tags_together;
  if (places_ == 0) {
    int last = 0;
    check_mpi(mpi()->last_tag(&last), "MPI_Comm_get_attr");
    places_ = std::uint64_t(last - above) / together;  // 4000 at least; mostly so many that none comes twice
  }
  std::erase_if(held_, [](auto const& h) { return h.second.expired(); });
  if (next_ >= places_) {  // what ranks have dropped is not the same on all
    std::array<std::int64_t, 64> held{};
    std::uint64_t tried = 0;
    for (; tried < places_; tried += held.size()) {
      for (std::size_t i = 0; i < held.size(); ++i) held[i] = std::int64_t(held_.contains((next_ + tried + i) % places_));
      comm.sum(std::span<std::int64_t>(held));
      auto const free = std::ranges::find(held, 0) - held.begin();
      if (free < std::ssize(held)) {
        tried += std::uint64_t(free);
        break;
      }
    }
    ASTERISM_REQUIRE(tried < places_, comm, "{} objects with channels use one communicator: drop some, or duplicate the communicator.",
                     places_);
    next_ += tried;
  }
  auto const place = next_++ % places_;
  auto const held = std::make_shared<int const>(above + 1 + together * int(place));
  held_[place] = held;
  return held;
}

}  // namespace asterism::comm
