#include <array>
#include <limits>
#include <new>

#include "asterism/base/error.hpp"
#include "asterism/base/shared_library.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::la {
namespace {

/// COLAMD of SuiteSparse, with 64-bit integers.
struct Colamd {
  using Long = std::int64_t;
  SharedLibrary file{{"libcolamd.so.2", "libcolamd.so.3", "libcolamd.so"}, "ASTERISM_COLAMD"};
  std::size_t (*recommended)(Long entries, Long rows, Long columns) = nullptr;
  void (*set_defaults)(double* knobs) = nullptr;
  int (*order)(Long rows, Long columns, Long length, Long* index, Long* offsets, double* knobs, Long* statistics) = nullptr;
  Colamd() {
    if (!file) return;
    file.find(recommended, "colamd_l_recommended"), file.find(set_defaults, "colamd_l_set_defaults"), file.find(order, "colamd_l");
  }
};

Colamd const& colamd() {
  static auto const* const c = new Colamd;
  return *c;
}

}  // namespace

std::vector<std::int32_t> column_minimum_degree(Csr const& a) {
  auto const& library = colamd();
  ASTERISM_REQUIRE(library.file, unsupported,
                   "colamd needs SuiteSparse's library, which was not found: {}. Debian's libcolamd2 or conda's suitesparse has it, or "
                   "ASTERISM_COLAMD names its file. Without it amd is the order with little fill (-pc_factor_mat_ordering_type amd).",
                   library.file.why_not());
  auto const by_columns = transpose(a);
  using Long = Colamd::Long;
  auto const length = library.recommended(by_columns.nnz(), a.rows, a.cols);
  if (length == 0) throw std::bad_alloc();
  auto const ptr = by_columns.row_offsets();
  auto const index = by_columns.column_indices();
  std::vector<Long> places(ptr.begin(), ptr.end()), work(index.begin(), index.end());
  work.resize(length);
  std::array<double, 20> knobs{};
  std::array<Long, 20> statistics{};
  library.set_defaults(knobs.data());
  auto const good = library.order(a.rows, a.cols, Long(length), work.data(), places.data(), knobs.data(), statistics.data());
  ASTERISM_REQUIRE(good == 1, internal, "colamd of '{}' failed with status {}.", library.file.path(), statistics[3]);
  return {places.begin(), places.end() - 1};
}

}  // namespace asterism::la
