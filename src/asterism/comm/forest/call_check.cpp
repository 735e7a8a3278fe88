#include "asterism/comm/forest/call_check.hpp"

#include <atomic>
#include <cstring>
#include <set>

namespace asterism::comm {
namespace {
std::atomic<bool> checks_are_on{false};
}

void set_call_checks(bool on) { checks_are_on = on; }
bool call_checks() { return checks_are_on.load(std::memory_order_relaxed); }

void require_same_call(Communicator const& comm, std::string_view forest, std::string_view call, Items const& items, Operation const& op) {
  auto const mine = format("{} of {} x {} ({} bytes) with {} on '{}'", call, items.k, name_of(items.type), items.unit(),
                           op.user() ? std::string_view("a user's operation") : name_of(op.op()), forest);
  std::vector<std::int64_t> lengths;
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span(mine)), &lengths);
  std::string_view rest(reinterpret_cast<char const*>(all.data()), all.size());
  std::string list;
  std::set<std::string_view> different;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    auto const theirs = rest.substr(0, std::size_t(lengths[r]));
    rest.remove_prefix(theirs.size());
    if (different.insert(theirs).second) list += format("{}rank {}: {}", list.empty() ? "" : "; ", r, theirs);
  }
  if (different.size() > 1) throw Error(ErrorKind::comm, format("the ranks called different operations: {}.", list), true);
}

SourceCopy::SourceCopy(std::vector<Side> const& sides, std::byte const* source, std::int64_t unit) {
  for (auto const& s : sides) {
    auto const at = values_.size();
    values_.resize(at + std::size_t(s.at.count() * unit));
    s.at.pack(source, values_.data() + at, unit);
  }
}

void SourceCopy::require_unchanged(std::vector<Side> const& sides, std::byte const* source, std::int64_t unit,
                                   std::string_view forest) const {
  auto const* then = values_.data();
  for (auto const& s : sides)
    for (std::int64_t e = 0; e < s.at.count(); ++e, then += unit)
      ASTERISM_REQUIRE(std::memcmp(then, source + s.at[e] * unit, std::size_t(unit)) == 0, value,
                       "star forest '{}': row {} of the array that is sent was changed between begin and end.", forest, s.at[e]);
}

}  // namespace asterism::comm
