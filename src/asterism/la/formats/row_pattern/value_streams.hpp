// The values of runs of rows. Those left of the diagonal of a run may be the mirror images of some right of it, bit by bit. Then the others
// are read in their place: a symmetric matrix holds half of its values, and reads them from memory once. The second time they are in a
// cache. Each entry of such runs has a stream of values, its rows' one after the other. Other runs have them in groups of one SIMD vector
// of rows: those are read in the order of their addresses, which is faster where there are many entries.
#pragma once
#include <span>

#include "asterism/la/formats/csr.hpp"
#include "asterism/la/formats/row_pattern/row_pattern_format.kernels.hpp"

namespace asterism::la {

struct ValueStreams {
  Array begins;  ///< int64: where each stream has the value of its run's first row
  Array values;
};

/// Of runs whose `uniform` and offset_at are known; sets held and value_at. offsets: of the columns, from a run's first row. Groups have
/// `group` rows. mirrored: whether to look for mirror images. S: the block's values; V: as they are held.
template <class S, class V>
ValueStreams value_streams(Csr const& block, std::span<kernel::PatternRun> runs, std::span<std::int32_t const> offsets, std::int32_t group,
                           bool mirrored);

}  // namespace asterism::la
