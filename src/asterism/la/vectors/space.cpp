#include "asterism/la/vectors/space.hpp"

#include <optional>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

struct Space::Meaning {
  std::int64_t block_size = 1;
  Vector near_null_space;
  std::optional<comm::QueuedForest> ghosts;
};

Space::Meaning Space::changed() const { return meaning_ ? *meaning_ : Meaning(); }

Space Space::with(Meaning meaning) const {
  Space s = *this;
  s.meaning_ = std::make_shared<Meaning const>(std::move(meaning));
  return s;
}

std::int64_t Space::block_size() const { return meaning_ ? meaning_->block_size : 1; }

Space Space::with_block_size(std::int64_t block_size) const {
  comm::agree(comm(), [&] {
    ASTERISM_REQUIRE(block_size >= 1 && global_size() % block_size == 0, shape, "block size {} does not divide the {} rows of the matrix.",
                     block_size, global_size());
    ASTERISM_REQUIRE(
        local_size() % block_size == 0, shape,
        "block size {} does not divide the {} rows here. Give each rank whole nodes; or say nothing, since amg finds nodes that "
        "two ranks share, or takes their size from -pc_amg_block_size.",
        block_size, local_size());
  });
  auto m = changed();
  m.block_size = block_size;
  return with(std::move(m));
}

Vector const& Space::near_null_space() const {
  static auto const* const none = new Vector;
  return meaning_ ? meaning_->near_null_space : *none;
}

Space Space::with_near_null_space(Vector modes) const {
  ASTERISM_REQUIRE(modes.layout().fits(*this), shape, "near-null space: {} rows here where the matrix has {}.", modes.local_size(),
                   local_size());
  auto m = changed();
  // in a plain space, or each would keep the one before
  m.near_null_space = Vector::wrap(static_cast<comm::Layout const&>(*this), modes.dtype(), modes.columns(), modes.data(), modes.queue());
  return with(std::move(m));
}

bool Space::has_local_form() const { return meaning_ && meaning_->ghosts; }

std::int64_t Space::ghosts() const { return has_local_form() ? meaning_->ghosts->forest().leaf_space() : 0; }

comm::QueuedForest const& Space::ghost_forest() const {
  ASTERISM_REQUIRE(has_local_form(), unsupported, "a space of {} entries has no local form: vectors have no room for ghosts.",
                   global_size());
  return *meaning_->ghosts;
}

Space Space::with_ghosts(comm::StarForest forest) const {
  comm::agree(comm(), [&] {
    ASTERISM_REQUIRE(forest.roots() == local_size() && forest.comm() == comm(), shape,
                     "ghosts: the star forest has {} roots where {} entries are this rank's.", forest.roots(), local_size());
  });
  auto m = changed();
  m.ghosts.emplace(std::move(forest));
  return with(std::move(m));
}

}  // namespace asterism::la
