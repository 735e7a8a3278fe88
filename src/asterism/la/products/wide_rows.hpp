// The right factor of a product: a row for each column of the left one, those of other ranks too.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

template <class T>
struct WideRows {
  Rows<T> own, far;            ///< far: those of other ranks, ascending
  Buffer<std::int64_t> begin;  ///< of each row: where it begins in own, or ~ its number in far
  std::int32_t below = 0;      ///< the number of the first own row
  ColumnMap columns;           ///< of both

  std::int32_t count() const { return own.count + far.count; }
  struct Row {
    std::int32_t const* columns;
    T const* values;
    std::int64_t size, room;  ///< entries that may be read
  };
  Row row(std::int32_t k) const {
    auto const at = begin[k];
    auto const& rows = at < 0 ? far : own;
    auto const i = at < 0 ? ~at : std::int64_t(k - below);
    auto const first = rows.ptr[i];
    return {rows.col.data() + first, rows.val.data() + first, rows.ptr[i + 1] - first, rows.ptr[rows.count] - first};
  }
};

/// B's rows for each of `map`'s indices, own and of other ranks, with one common column map. Own values are not copied. Collective.
template <class T>
WideRows<T> wide_rows(Rows<T> const& B, Layout const& B_rows, Layout const& B_columns, ColumnMap const& map);
/// The same of rows that are here already, numbered by one map.
template <class T>
WideRows<T> wide_rows(Rows<T> own, Rows<T> far, ColumnMap const& map);
/// Rows whose columns the map has.
template <class T>
Rows<T> local_rows(GhostRows<T> const& rows, ColumnMap const& map);
/// Columns numbered by another map, which has them all.
template <class T>
void renumber(Rows<T>& rows, ColumnMap const& map);

}  // namespace asterism::la
