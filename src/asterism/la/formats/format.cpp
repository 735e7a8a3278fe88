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
  // as the couplings to other ranks where there are none: no row is looked at
  if (writes == Writes::rows_with_entries && block.rows > 0 && block.nnz() == 0) {
    Csr empty(block.dtype, 0, block.cols, 0);
    empty.bfloat16 = block.bfloat16;
    return choose_format(empty, writes);
  }
  for (auto const& format : formats())
    if (auto made = format.make(block, writes, FormatChoice::where_it_suits)) return made;
  ASTERISM_ASSERT(false);
  return nullptr;
}

std::shared_ptr<SparseFormat const> choose_format(Csr const& block, Writes writes, Dtype dtype, SparseFormat const* known) {
  if (dtype == block.dtype) return choose_format(block, writes);
  if (dtype == Dtype::float32 && block.dtype == Dtype::float64) {
    if (known)
      if (auto made = known->narrowed(block)) return made;
    for (auto const& format : formats())
      if (!known && format.make_narrow)
        if (auto made = format.make_narrow(block, writes)) return made;
  }
  return choose_format(converted(block, dtype), writes);
}

}  // namespace asterism::la
