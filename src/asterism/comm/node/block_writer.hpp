// Copies blocks into memory that another process reads next: through the caches or around them, by what was measured.
//
// Between cores that share a cache a block stays there until it is read. Between cores that do not (other chiplets, other
// sockets) every line is fetched from and given back to a far cache, at a quarter of what memory itself could do (AMD EPYC: 1.8
// against 8.5 GB/s); stores that go around the caches then win. Which of the two a neighbour is, nobody tells reliably, least
// of all in a virtual machine that is moved about, so the writer looks at the time that it takes now and then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace asterism::comm::node {

class BlockWriter {
 public:
  /// As memcpy; what is written may be published by a release store afterwards.
  void copy(std::byte* to, std::byte const* from, std::int64_t bytes);
  /// Whether the next long block may as well be written by the caller, who need not put it together elsewhere first; counts it.
  bool leaves_to_caller();
  /// Whether the next long block goes around the caches.
  bool around() const { return known() && around_.ticks_per_byte < clearly * through_.ticks_per_byte; }
  /// Whether a reader should rather take a long block where it lies than get a copy: not from a far cache, and not before the
  /// writer knows whether it is one. Now and then no, so that it sees if that changes.
  bool better_lent() { return known() && !around() && ++lent_ % 16 != 0; }
  /// What was found, for people; empty before.
  std::string describe() const;
  /// Blocks from here on are measured and may go around the caches.
  static constexpr std::int64_t from = 2 << 10;

 private:
  /// The reader fetches from memory what went around, and what goes through now and then only is not in the caches either. Seen:
  /// 0.15 to 0.25 between far cores, 0.3 to 2 between near ones.
  static constexpr double clearly = 0.4;
  struct Rate {
    double ticks_per_byte = 0;
    void measured(double value);
  };
  bool known() const;  // both were measured, and not only on memory that was touched for the first time
  Rate through_, around_;
  std::uint32_t blocks_ = 0, lent_ = 0;
};

}  // namespace asterism::comm::node
