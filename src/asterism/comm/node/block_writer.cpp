#include "asterism/comm/node/block_writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "asterism/base/format.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace asterism::comm::node {
namespace {

constexpr std::uint32_t look_every = 8, try_other_every = 64;  // blocks

#if defined(__x86_64__)
constexpr bool can_go_around = true;

void copy_around(std::byte* to, std::byte const* from, std::int64_t bytes) {
  constexpr std::int64_t line = 64;
  auto const head = std::min(bytes, std::int64_t(-reinterpret_cast<std::uintptr_t>(to) % line));
  std::memcpy(to, from, std::size_t(head));
  to += head, from += head, bytes -= head;
  for (; bytes >= line; to += line, from += line, bytes -= line)
    for (int i = 0; i < line; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i)));
  std::memcpy(to, from, std::size_t(bytes));
  _mm_sfence();  // a release store does not wait for these
}
#else
constexpr bool can_go_around = false;
void copy_around(std::byte* to, std::byte const* from, std::int64_t bytes) { std::memcpy(to, from, std::size_t(bytes)); }
#endif

}  // namespace

/// Follows what got faster quickly and what got slower slowly: a core that was taken away in between says nothing.
void BlockWriter::Rate::measured(double value) {
  auto& t = ticks_per_byte;
  t = t == 0 ? value : value < t ? (t + value) / 2 : std::min(value, 1.25 * t);
}

bool BlockWriter::known() const { return !can_go_around || blocks_ >= 4 * try_other_every; }

std::string BlockWriter::describe() const {
  if (!can_go_around || !known()) return {};
  auto const ratio = std::round(100 * around_.ticks_per_byte / through_.ticks_per_byte) / 100;
  return format("long messages go {} the caches: writing around them takes {} of the time, under {} pays", around() ? "around" : "through",
                ratio, clearly);
}

bool BlockWriter::leaves_to_caller() {
  if (can_go_around && (around() || (blocks_ + 1) % look_every == 0)) return false;
  ++blocks_;
  return true;
}

void BlockWriter::copy(std::byte* to, std::byte const* from, std::int64_t bytes) {
  if (bytes < BlockWriter::from || !can_go_around) {
    if (bytes > 0) std::memcpy(to, from, std::size_t(bytes));
    return;
  }
  auto const n = ++blocks_;
  bool const go_around = around() != (n % try_other_every == 0);
  auto const write = [&] { go_around ? copy_around(to, from, bytes) : void(std::memcpy(to, from, std::size_t(bytes))); };
  if (n % look_every != 0) return write();
  auto const start = profile::ticks_now();
  write();
  (go_around ? around_ : through_).measured(double(profile::ticks_now() - start) / double(bytes));
  if (n == 4 * try_other_every) log::info("between ranks of this machine {}", describe());
}

}  // namespace asterism::comm::node
