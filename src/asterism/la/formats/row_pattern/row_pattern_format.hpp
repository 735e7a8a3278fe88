// Where many rows have the same column offsets (grids), the offsets are stored once per run of rows, and the values in groups of one SIMD
// vector of rows: 8 bytes an entry in float64 instead of 12, and no gathers. Half of those of a symmetric matrix are left out
// (value_streams.hpp). Runs whose rows have the same values too (constant coefficients) have those once: nothing but x and y is moved. The
// rows of a run are neighbours, or every second to fourth one; so are their columns (interpolation to a grid, and its transpose). Rows in
// no run are csr.
#pragma once
#include "asterism/base/lazy.hpp"
#include "asterism/la/formats/csr/csr_format.hpp"
#include "asterism/la/formats/format_argument.hpp"
#include "asterism/la/formats/row_pattern/row_pattern_format.kernels.hpp"

namespace asterism::la {

class RowPatternFormat final : public SparseFormat {
 public:
  /// For products in that dtype. With at least one run, whose place, offset_at and value_at are found here, and whether it is uniform,
  /// unless that is known. rest: rows in none.
  RowPatternFormat(Csr const& block, Writes writes, Dtype dtype, std::vector<kernel::PatternRun> runs,
                   std::vector<std::int32_t> const& rest);

  std::string_view name() const override { return "row_pattern"; }
  void run(device::Queue const& queue, Epilogue epilogue, std::int64_t k, Array const& x, Array const& y, Array const& b,
           Array const& w) const override;
  bool dots() const override { return dots_; }
  void run_and_dot(device::Queue const& queue, Epilogue epilogue, Array const& x, Array const& y, Array const& sum, Array const& b,
                   Array const& w) const override;
  double bytes(std::int64_t k) const override;
  std::size_t memory_bytes() const override { return total_bytes(*this); }
  std::shared_ptr<SparseFormat const> narrowed(Csr const& block) const override;

  template <class T, class V>
  kernel::PatternBlock<T, V> view(device::Memory m) const;
  template <class F>
  void each_array(device::Memory m, F const& f) const {
    f(runs_), f(columns_), f(streams_), f(values_), f(batches_);
    rest_.each_array(f);
    if (m == device::Memory::gpu) f(tiles());
  }

 private:
  template <class S, class V>
  void fill(Csr const& block, std::vector<kernel::PatternRun>& runs);
  std::int32_t rows_in_runs() const;
  void make_batches();
  Array const& tiles() const;
  Writes writes_;
  Array runs_, columns_, streams_, values_;
  CsrArrays rest_;
  Array batches_;
  bool dots_ = false;
  mutable Lazy<Array> tiles_;  // on a GPU
};

}  // namespace asterism::la
