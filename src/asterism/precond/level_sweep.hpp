// Triangular sweeps by levels of rows on a GPU's queue.
#pragma once
#include "asterism/la/vectors/vector.hpp"
#include "asterism/precond/level_sweep.kernels.hpp"
#include "asterism/precond/levels.hpp"

namespace asterism::precond {

/// Rows by levels as a GPU takes them.
struct RowsOnGpu {
  LevelStarts starts;
  la::Array rows, offsets, columns, values;
  explicit RowsOnGpu(RowsByLevel const& r)
      : starts(std::make_shared<std::vector<std::int64_t>>(r.levels.starts())),
        rows(la::Array::of(std::span(r.levels.rows()))),
        offsets(la::Array::of(std::span(r.offsets))),
        columns(la::Array::of(std::span(r.columns))),
        values(r.values) {}

  /// As RowsByLevel::sweep. b may be z.
  template <class T>
  void sweep(bool pivot_first, la::Vector const& b, la::Vector& z) const {
    using device::read;
    auto const submit = [&](auto const& to) {
      device::submit(z.queue(), kernel::level_sweep<T>, starts, pivot_first, z.columns(), read<std::int32_t>(rows),
                     read<std::int64_t>(offsets), read<std::int32_t>(columns), read<T>(values), read<T>(b.data()), to);
    };
    if (&b == &z) submit(device::update<T>(z.data()));
    else submit(device::write<T>(z.data()));
  }
  /// z_i += omega (b_i - (A z)_i) / a_ii for all rows, level by level.
  template <class T>
  void relax(bool from_last, T omega, la::Vector const& b, la::Vector& z) const {
    using device::read;
    device::submit(z.queue(), kernel::level_relax<T>, starts, from_last, omega, z.columns(), read<std::int32_t>(rows),
                   read<std::int64_t>(offsets), read<std::int32_t>(columns), read<T>(values), read<T>(b.data()),
                   device::update<T>(z.data()));
  }
};

}  // namespace asterism::precond
