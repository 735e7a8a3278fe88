#include "asterism/la/formats/row_pattern/value_streams.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "asterism/device/executor.hpp"

namespace asterism::la {

using kernel::PatternRun;

namespace {

constexpr std::int32_t most_beyond = 4;  // rows before and after a run whose values its streams may hold too, for their mirror images
constexpr std::int64_t least_runs = 32;  // that are worth a thread

/// Of one entry of a run.
struct Stream {
  std::int64_t mirrored = -1;           // the stream that has its values, if that is another one
  bool lends = false;                   // whether its values are others' too
  std::int32_t shift = 0;               // of its first row in that one
  std::int32_t before = 0, behind = 0;  // rows beyond the stream's run whose values it holds: for those that have theirs there
  std::int64_t begin = 0;               // where the first row's value is
};

template <class S, class V>
class Streams {
 public:
  Streams(Csr const& a, std::span<PatternRun> runs, std::span<std::int32_t const> offsets, std::int32_t group)
      : runs_(runs), offsets_(offsets), group_(group), ptr_(a.row_offsets().data()), val_(a.entries<S>().data()) {}

  ValueStreams made(bool mirrored) {
    std::int64_t streams = 0;
    for (auto& r : runs_)
      if (!r.uniform) r.value_at = std::exchange(streams, streams + r.length);
    streams_.resize(std::size_t(streams));
    if (mirrored) each_run([this](PatternRun const& r) { find_mirrored(r); });
    Array const values(std::size_t(placed()) * sizeof(V));
    bool const any = std::ranges::any_of(runs_, [](PatternRun const& r) { return r.held > 0; });
    ValueStreams out{Array(any ? streams_.size() * sizeof(std::int64_t) : 0), values};
    if (any) std::ranges::transform(streams_, out.begins.template as<std::int64_t>(), &Stream::begin);
    each_run([this, to = out.values.template as<V>()](PatternRun const& r) {
      if (r.held > 0) store_streams(r, to);
      else store_groups(r, to + r.value_at);
    });
    return out;
  }

 private:
  using Bits = std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t>;

  template <class F>
  void each_run(F const& f) const {
    device::Executor executor;
    auto const all = [&](std::int64_t begin, std::int64_t end) { std::for_each(runs_.begin() + begin, runs_.begin() + end, f); };
    device::parallel_ranges(executor, std::int64_t(runs_.size()), all, least_runs);
  }
  /// Of a run with streams.
  Stream& stream(PatternRun const& r, std::int32_t p) { return streams_[std::size_t(r.value_at + p)]; }
  S const* first_value(PatternRun const& r, std::int32_t p) const { return val_ + ptr_[r.first] + p; }
  std::int32_t offset(PatternRun const& r, std::int32_t p) const { return offsets_[std::size_t(r.offset_at) + std::size_t(p)]; }
  static bool has_mirror_images(PatternRun const& r) { return !r.uniform && r.row_step == 1 && r.column_step == 1; }

  /// The run that has rows [begin, end) but for a few at its ends.
  PatternRun const* run_of(std::int32_t begin, std::int32_t end) const {
    auto const after = std::partition_point(runs_.begin(), runs_.end(), [=](auto const& r) { return r.first <= begin + most_beyond; });
    if (after == runs_.begin()) return nullptr;
    auto const& r = after[-1];
    return has_mirror_images(r) && r.first + r.count + most_beyond >= end ? &r : nullptr;
  }

  void find_mirrored(PatternRun const& r) {
    if (!has_mirror_images(r)) return;
    for (std::int32_t p = 0; p < r.length && offset(r, p) < 0; ++p) {
      auto const begin = r.first + offset(r, p);  // the rows of the mirror images
      auto const* const other = run_of(begin, begin + r.count);
      if (!other) continue;
      auto const from = offsets_.subspan(std::size_t(other->offset_at), std::size_t(other->length));
      auto const place = std::lower_bound(from.begin(), from.end(), -offset(r, p));
      if (place == from.end() || *place != -offset(r, p)) continue;
      auto const q = std::int32_t(place - from.begin());
      auto const shift = begin - other->first;
      if (!equal(r, p, *other, q, shift)) continue;
      auto& s = stream(r, p);
      s.mirrored = other->value_at + q;
      s.shift = shift;
      s.before = std::max(0, -shift);
      s.behind = std::max(0, shift + r.count - other->count);
    }
  }

  /// Whether entry p of each row l of r is that at q of row l + shift of the other run, where that is one.
  bool equal(PatternRun const& r, std::int32_t p, PatternRun const& other, std::int32_t q, std::int32_t shift) const {
    auto const begin = std::max(0, -shift), end = std::min(r.count, other.count - shift);
    auto const *here = first_value(r, p), *there = first_value(other, q);
    Bits differ = 0;
    for (std::int64_t l = begin; l < end && differ == 0; ++l)
      differ = std::bit_cast<Bits>(here[l * r.length]) ^ std::bit_cast<Bits>(there[(l + shift) * other.length]);
    return differ == 0 && begin < end;
  }

  /// Finds where values are; returns how many there are.
  std::int64_t placed() {
    for (auto const& s : streams_) {
      if (s.mirrored < 0) continue;
      auto& other = streams_[std::size_t(s.mirrored)];
      other.lends = true;
      other.before = std::max(other.before, s.before);
      other.behind = std::max(other.behind, s.behind);
    }
    std::int64_t values = 0;
    for (auto& r : runs_) {
      r.held = 0;
      if (r.uniform) {
        r.value_at = std::exchange(values, values + r.length);
        continue;
      }
      std::span const own(&stream(r, 0), std::size_t(r.length));
      bool const apart = std::ranges::none_of(own, [](Stream const& s) { return s.mirrored >= 0 || s.lends; });
      if (apart) {
        r.value_at = std::exchange(values, values + std::int64_t((r.count + group_ - 1) / group_) * group_ * r.length);
        continue;
      }
      for (auto& s : own) {
        if (s.mirrored >= 0) continue;
        ++r.held;
        s.begin = values + s.before;
        values = s.begin + r.count + s.behind;
      }
    }
    for (auto& s : streams_)
      if (s.mirrored >= 0) s.begin = streams_[std::size_t(s.mirrored)].begin + s.shift;
    return values;
  }

  void store_groups(PatternRun const& r, V* out) const {
    if (r.uniform) {
      std::transform(first_value(r, 0), first_value(r, r.length), out, [](S v) { return V(v); });
      return;
    }
    for (std::int32_t at = 0; at < r.count; at += group_, out += std::int64_t(group_) * r.length)
      for (std::int32_t i = 0, l0 = std::min(at, r.count - group_); i < group_; ++i) {
        auto const* const in = val_ + ptr_[r.first + (l0 + i) * r.row_step];
        for (std::int32_t p = 0; p < r.length; ++p) out[p * group_ + i] = V(in[p]);
      }
  }

  void store_streams(PatternRun const& r, V* to) {
    constexpr std::int32_t together = 64;  // rows, which are in the first cache
    for (std::int32_t begin = 0; begin < r.count; begin += together)
      for (std::int32_t p = 0; p < r.length; ++p) {
        auto const& s = stream(r, p);
        auto const end = std::min(r.count, begin + together);
        auto const copy = [in = first_value(r, p), out = to + s.begin, length = std::int64_t(r.length)](std::int32_t first,
                                                                                                        std::int32_t last) {
          for (auto l = first; l < last; ++l) out[l] = V(in[l * length]);
        };
        if (s.mirrored < 0) {
          copy(begin, end);
        } else {  // what is beyond the rows of the other run
          copy(begin, std::min(s.before, end));
          copy(std::max(begin, r.count - s.behind), end);
        }
      }
  }

  std::span<PatternRun> runs_;
  std::span<std::int32_t const> offsets_;
  std::int32_t group_;
  std::int64_t const* ptr_;
  S const* val_;
  std::vector<Stream> streams_;  // of each entry of runs that are not uniform
};

}  // namespace

template <class S, class V>
ValueStreams value_streams(Csr const& block, std::span<PatternRun> runs, std::span<std::int32_t const> offsets, std::int32_t group,
                           bool mirrored) {
  return Streams<S, V>(block, runs, offsets, group).made(mirrored);
}

template ValueStreams value_streams<float, float>(Csr const&, std::span<PatternRun>, std::span<std::int32_t const>, std::int32_t, bool);
template ValueStreams value_streams<float, Bfloat16>(Csr const&, std::span<PatternRun>, std::span<std::int32_t const>, std::int32_t, bool);
template ValueStreams value_streams<double, float>(Csr const&, std::span<PatternRun>, std::span<std::int32_t const>, std::int32_t, bool);
template ValueStreams value_streams<double, double>(Csr const&, std::span<PatternRun>, std::span<std::int32_t const>, std::int32_t, bool);

}  // namespace asterism::la
