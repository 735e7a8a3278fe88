#include "asterism/la/vectors/space.hpp"

#include <optional>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/lazy.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

/// Made when they are first asked for. Copies of a space share them.
struct Space::Coordinates {
  explicit Coordinates(std::function<Vector()> how) : make(std::move(how)) {}
  std::function<Vector()> make;
  mutable Lazy<Vector> made;
};

struct Space::Meaning {
  std::int64_t block_size = 1;
  Vector near_null_space;
  std::shared_ptr<Coordinates const> coordinates;  // none: not known
  std::optional<comm::QueuedForest> ghosts;
  std::shared_ptr<std::vector<std::pair<std::int64_t, std::int64_t>> const> padding;
  device::Array padding_runs;
  std::shared_ptr<std::function<std::string(std::int64_t)> const> names;
};

Space::Meaning Space::changed() const { return meaning_ ? *meaning_ : Meaning(); }

Space Space::with(Meaning meaning) const {
  Space s = *this;
  s.meaning_ = std::make_shared<Meaning const>(std::move(meaning));
  return s;
}

bool Space::has_meaning() const {
  if (!meaning_) return false;
  auto const& m = *meaning_;
  return m.block_size != 1 || m.near_null_space || m.coordinates || m.ghosts || m.padding || m.names;
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
  if (m.block_size != block_size) m.coordinates = nullptr;  // of other nodes
  m.block_size = block_size;
  return with(std::move(m));
}

comm::Layout Space::nodes() const {
  auto const size = block_size();
  if (size == 1) return *this;
  auto offsets = this->offsets();
  for (auto& o : offsets) o /= size;
  return Layout::from_offsets(comm(), std::move(offsets));
}

Vector const& Space::near_null_space() const {
  static auto const* const none = new Vector;
  return meaning_ ? meaning_->near_null_space : *none;
}

Space Space::with_near_null_space(Vector modes) const {
  auto m = changed();
  m.near_null_space = {};
  if (!modes) return with(std::move(m));
  ASTERISM_REQUIRE(modes.layout().fits(*this), shape, "near-null space: {} rows here where the matrix has {}.", modes.local_size(),
                   local_size());
  // in a plain space, or each would keep the one before
  m.near_null_space = Vector::wrap(static_cast<comm::Layout const&>(*this), modes.dtype(), modes.columns(), modes.data(), modes.queue());
  return with(std::move(m));
}

Vector const& Space::coordinates() const {
  static auto const* const none = new Vector;
  if (!meaning_ || !meaning_->coordinates) return *none;
  auto const& c = *meaning_->coordinates;
  return c.made.made_by(c.make);
}

Space Space::with_coordinates(Vector xyz) const {
  comm::agree(comm(), [&] {
    ASTERISM_REQUIRE(xyz.dtype() == Dtype::float64 && xyz.columns() >= 1 && xyz.columns() <= 3, shape,
                     "coordinates are float64 in 1 to 3 dimensions, not {} in {}.", name_of(xyz.dtype()), xyz.columns());
    ASTERISM_REQUIRE(xyz.local_size() * block_size() == local_size(), shape,
                     "coordinates of {} nodes here where the space has {} entries, {} a node.", xyz.local_size(), local_size(),
                     block_size());
  });
  auto m = changed();
  m.coordinates = std::make_shared<Coordinates const>(nullptr);
  m.coordinates->made.made_by([&] { return std::move(xyz); });
  return with(std::move(m));
}

Space Space::with_coordinates(std::function<Vector()> make) const {
  auto m = changed();
  m.coordinates = std::make_shared<Coordinates const>(std::move(make));
  return with(std::move(m));
}

std::size_t Space::memory_bytes() const {
  if (!meaning_) return 0;
  auto const* const xyz = meaning_->coordinates ? meaning_->coordinates->made.get() : nullptr;
  return meaning_->near_null_space.data().bytes() + (xyz ? xyz->data().bytes() : 0);
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

std::vector<std::pair<std::int64_t, std::int64_t>> const& Space::padding() const {
  static std::vector<std::pair<std::int64_t, std::int64_t>> const none;
  return meaning_ && meaning_->padding ? *meaning_->padding : none;
}

device::Array const& Space::padding_runs() const {
  static device::Array const none;
  return meaning_ ? meaning_->padding_runs : none;
}

std::string Space::own_entry_name(std::int64_t place) const {
  return meaning_ && meaning_->names ? (*meaning_->names)(place) : format("row {}", begin() + place);
}

std::string Space::entry_name(std::int64_t entry) const {
  int const rank = owner(entry);
  return comm().bcast(rank == comm().rank() ? own_entry_name(entry - begin()) : std::string(), rank);
}

bool Space::has_own_order() const { return meaning_ && meaning_->names; }

bool Space::has_order_of(Space const& other) const {
  return has_own_order() && other.has_own_order() && meaning_->names == other.meaning_->names;
}

Space Space::with_names(std::function<std::string(std::int64_t)> names) const {
  auto m = changed();
  m.names = std::make_shared<std::function<std::string(std::int64_t)> const>(std::move(names));
  return with(std::move(m));
}

Space Space::with_padding(std::vector<std::pair<std::int64_t, std::int64_t>> runs) const {
  auto m = changed();
  std::vector<std::int64_t> numbers;
  for (auto const& [first, count] : runs) numbers.insert(numbers.end(), {first, count});
  m.padding_runs = device::Array::of(std::span<std::int64_t const>(numbers));
  m.padding = std::make_shared<std::vector<std::pair<std::int64_t, std::int64_t>> const>(std::move(runs));
  return with(std::move(m));
}

}  // namespace asterism::la
