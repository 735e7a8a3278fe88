// What a transport sends: one stretch of memory for each side.
#pragma once
#include <cstddef>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {

/// f(side, address, bytes) for each side of this transport: in the source where a side is contiguous, else packed into `buffer`.
template <class F>
void each_outgoing(Traffic const& t, TransportKind kind, std::byte const* source, std::vector<std::byte>& buffer, F const& f) {
  std::int64_t bytes = 0;
  for (auto const& s : *t.out)
    if (s.transport == kind && !s.at.contiguous()) bytes += s.at.count() * t.unit;
  if (std::int64_t(buffer.size()) < bytes) buffer.resize(std::size_t(bytes));
  auto* next = buffer.data();
  for (auto const& s : *t.out) {
    if (s.transport != kind) continue;
    auto const length = s.at.count() * t.unit;
    std::byte const* place = source + s.at.first() * t.unit;
    if (!s.at.contiguous()) {
      s.at.pack(source, next, t.unit);
      place = next;
      next += length;
    }
    f(s, place, length);
    profile::count_message(1, double(length));
  }
}

}  // namespace asterism::comm
