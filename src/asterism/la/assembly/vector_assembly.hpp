// A vector from entries whose places are known once and whose values come many times: loads of finite elements.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "asterism/la/assembly/entries.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

class VectorAssembly {
 public:
  /// My entries stand at i[e], anywhere in the vector; negative ones are ignored. i is not kept. replace: of several at one place the last
  /// one counts, in the order (rank, position), instead of their sum. Collective; an index out of range, or one of another rank where those
  /// are refused, is an error on all ranks. Cost: linear in the entries.
  VectorAssembly(Layout const& rows, std::span<std::int64_t const> i, bool replace = false, Remote remote = Remote::send);
  /// Of the values: my entries as they were given.
  Layout const& entries() const;
  Layout const& rows() const;

  /// The vector of these values, (entries), on their queue; zero where there are none. Sums are made in the order (rank, position): same
  /// bits every time, on every queue. Nobody waits (on several ranks: but for what was to be sent before). Collective.
  Vector vector(Vector const& values) const;

 private:
  struct Plan;
  std::shared_ptr<Plan const> plan_;
};

}  // namespace asterism::la
