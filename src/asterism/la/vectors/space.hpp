// What the entries of a vector mean: who owns them, what a node is, which neighbours' entries an operator reads beside them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/comm/layout/layout.hpp"

namespace asterism::la {

class Vector;

/// A layout with a meaning. A value: copies share what they hold, and the functions with_...() make another space. Spaces fit where their
/// layouts do; a plain layout is a space without a meaning of its own.
class Space : public comm::Layout {
 public:
  Space() = default;
  Space(comm::Layout layout) : Layout(std::move(layout)) {}

  /// Whether anything but the layout is known. The same on all ranks.
  bool has_meaning() const;

  /// Entries of a node of the mesh, one after the other: 1 if nothing is known.
  std::int64_t block_size() const;
  /// Whole nodes on each rank. Collective; else an error on all ranks. Coordinates of nodes of another size are left out.
  Space with_block_size(std::int64_t block_size) const;
  /// The layout of the nodes.
  Layout nodes() const;

  /// (n, m): vectors that operators of this space map to nearly zero, m columns; without entries and false as a bool if none are known.
  Vector const& near_null_space() const;
  /// An error if its layout is another one. A vector without entries: no modes are known.
  Space with_near_null_space(Vector modes) const;

  /// (nodes, d): where the nodes are, float64, on the layout nodes(), in 1 to 3 dimensions. Without entries and false as a bool if that is
  /// not known.
  Vector const& coordinates() const;
  /// Collective; an error on all ranks if their layout is not nodes().
  Space with_coordinates(Vector xyz) const;
  /// make() makes them when they are first asked for: on one rank or several, so it is not collective.
  Space with_coordinates(std::function<Vector()> make) const;

  /// Of modes and of coordinates that are there.
  std::size_t memory_bytes() const;

  /// Entries of other ranks that stand behind the own ones in vectors of this space; 0 without a local form.
  std::int64_t ghosts() const;
  bool has_local_form() const;
  /// From a vector's data() (its roots) to its ghosts (its leaves). An error without a local form.
  comm::QueuedForest const& ghost_forest() const;
  /// With a local form, from a star forest whose roots are the own entries and whose leaves the ghosts, counted from 0. Collective.
  Space with_ghosts(comm::StarForest forest) const;

  /// Own entries that stand for nothing, as runs (first, count), ascending. They are zero in every vector: operators keep them so, and
  /// fill() and fill_hashed() leave them out.
  std::vector<std::pair<std::int64_t, std::int64_t>> const& padding() const;
  /// The same for kernels: first, count, first, count, ... of 64 bits.
  device::Array const& padding_runs() const;
  Space with_padding(std::vector<std::pair<std::int64_t, std::int64_t>> runs) const;

  /// What messages call an own entry: its row, or what was given by its place here, such as a point of a grid.
  std::string own_entry_name(std::int64_t place) const;
  /// The same of any entry. Collective.
  std::string entry_name(std::int64_t entry) const;
  /// For entries in an order of the space's own.
  Space with_names(std::function<std::string(std::int64_t place)> names) const;
  bool has_own_order() const;
  /// Whether both have that of one with_names().
  bool has_order_of(Space const& other) const;

 private:
  struct Coordinates;
  struct Meaning;
  Meaning changed() const;
  Space with(Meaning meaning) const;
  std::shared_ptr<Meaning const> meaning_;  // none: block size 1, nothing else
};

}  // namespace asterism::la
