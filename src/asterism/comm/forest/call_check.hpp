// Checks of star-forest operations that cost too much to be on always: the option -sf_debug.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "asterism/comm/layout/items.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {

void set_call_checks(bool on);
bool call_checks();

/// Collective: an error on all ranks if they call different operations, with what each called.
void require_same_call(Communicator const& comm, std::string_view forest, std::string_view call, Items const& items, Operation const& op);

/// The values that an operation sends, to find out whether somebody changes them before it ends.
class SourceCopy {
 public:
  SourceCopy(std::vector<Side> const& sides, std::byte const* source, std::int64_t unit);
  /// Throws with the first place that differs.
  void require_unchanged(std::vector<Side> const& sides, std::byte const* source, std::int64_t unit, std::string_view forest) const;

 private:
  std::vector<std::byte> values_;
};

}  // namespace asterism::comm
