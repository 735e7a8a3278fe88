#include "asterism/direct/triangular/front_triangle.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "asterism/direct/at.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// Of a front: what is below its pivots in the triangle, ascending, and where in the front each is.
struct Below {
  Ints rows, order;
  Below(NumericFactors const& f, FactoredFront const& front, FrontPart part, std::span<std::int32_t const> place_beyond) {
    auto const pivots = std::int32_t(f.row_order.size());
    auto const& list = part == FrontPart::upper ? front.columns : front.rows;
    Ints places;
    for (auto const i : list) places.push_back(i < pivots ? i : place_beyond[at(i - pivots)]);
    order.resize(places.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return places[at(a)] < places[at(b)]; });
    for (auto const i : order) rows.push_back(places[at(i)]);
  }
};

/// f(first column, end) for the parts of so many columns, nearly equal.
template <class F>
void each_part(std::int32_t columns, std::int32_t widest, F const& f) {
  auto const parts = (columns + widest - 1) / widest;
  for (std::int32_t p = 0; p < parts; ++p)
    f(std::int32_t(std::int64_t(columns) * p / parts), std::int32_t(std::int64_t(columns) * (p + 1) / parts));
}

}  // namespace

Supernodes front_supernodes(NumericFactors const& f, FrontPart part, std::int32_t widest, std::span<std::int32_t const> place_beyond) {
  Supernodes out;
  out.starts = {0};
  out.row_offsets = {0};
  for (auto const& front : f.fronts) {
    Below const below(f, front, part, place_beyond);
    each_part(front.pivots, widest, [&](std::int32_t, std::int32_t end) {
      out.starts.push_back(front.first + end);
      for (auto i = end; i < front.pivots; ++i) out.row_indices.push_back(front.first + i);
      out.row_indices.insert(out.row_indices.end(), below.rows.begin(), below.rows.end());
      out.row_offsets.push_back(std::int64_t(out.row_indices.size()));
      out.parent.push_back(-1);  // blocks say who needs whom
    });
  }
  return out;
}

void take_fronts(NumericFactors const& f, FrontPart part, std::int32_t widest, std::span<std::int32_t const> place_beyond,
                 LocalTriangle& to) {
  bool const upper = part == FrontPart::upper;
  with_dtype(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    bool const unit = f.kind != FactorKind::cholesky && !upper;
    std::int32_t k = 0;
    std::vector<T> panel;
    for (auto const& front : f.fronts) {
      Below const below(f, front, part, place_beyond);
      std::int64_t const m = front.size, rest = upper ? front.beside() : front.below();
      T const *const values = front.panel.as<T>(), *const right = upper ? front.right.as<T>() : nullptr;
      each_part(front.pivots, widest, [&](std::int32_t begin, std::int32_t end) {
        auto const leading = front.pivots + rest - begin;
        panel.assign(at(leading * (end - begin)), T(0));
        for (std::int64_t j = begin; j < end; ++j) {
          T* const column = panel.data() + (j - begin) * leading;
          for (auto i = j; i < front.pivots; ++i) column[i - begin] = upper ? values[i * m + j] : values[j * m + i];
          for (std::int64_t r = 0; r < rest; ++r) {
            auto const from = std::int64_t(below.order[at(r)]);
            column[front.pivots - begin + r] = upper ? right[j * rest + from] : values[j * m + front.pivots + from];
          }
        }
        to.take(k++, panel.data(), leading, unit);
      });
    }
  });
}

}  // namespace asterism::direct
