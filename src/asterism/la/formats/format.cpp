#include "asterism/la/formats/format.hpp"

#include "asterism/base/error.hpp"

namespace asterism::la {

std::span<FormatEntry const> formats() {
#define ENTRY(NAME) NAME##_format(),
  static FormatEntry const all[] = {ASTERISM_FORMATS(ENTRY)};
#undef ENTRY
  return all;
}

std::shared_ptr<SparseFormat const> choose_format(Csr const& block, Writes writes) {
  for (auto const& format : formats())
    if (auto made = format.make(block, writes, FormatChoice::where_it_suits)) return made;
  ASTERISM_ASSERT(false);
  return nullptr;
}

}  // namespace asterism::la
