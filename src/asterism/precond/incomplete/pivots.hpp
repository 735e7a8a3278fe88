// What incomplete factorisations do about pivots that cannot be divided by.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "asterism/base/complex.hpp"
#include "asterism/base/error.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/options.hpp"
#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/la/formats/csr.hpp"
#include "asterism/la/vectors/space.hpp"

namespace asterism::precond {

class Pivots {
 public:
  static std::vector<OptionSpec> options(std::string const& shift = "none", double amount = 1e-10) {
    return {
        choice_option("pc_factor_shift_type", shift, {"none", "nonzero", "positive_definite"},
                      "nonzero: a pivot that is nearly zero is shifted; positive_definite: the diagonal is enlarged until all pivots are "
                      "positive"),
        real_option("pc_factor_shift_amount", amount, "of nonzero: relative to the largest entry of the row", 0),
        real_option("pc_factor_zeropivot", 2.3e-14, "a pivot below this times the largest entry of its row counts as zero", 0),
    };
  }
  /// rows: of the matrix, for errors.
  Pivots(Configuration const& config, OptionTable const& table, std::string method, la::Space rows)
      : prefix_(config.prefix), method_(std::move(method)), rows_(std::move(rows)) {
    auto r = config.reader(table);
    shift_ = r.text("pc_factor_shift_type");
    if (shift_ == "nonzero") amount_ = r.real("pc_factor_shift_amount");
    zero_ = r.real("pc_factor_zeropivot");
  }

  /// Those of a definite matrix: its symmetry is to be kept.
  bool are_to_be_positive() const { return shift_ == "positive_definite"; }
  /// The block's rows were permuted: row i was row_of[i], for errors.
  void set_rows(std::vector<std::int32_t> row_of) { row_of_ = std::move(row_of); }

  /// f(a), which divides by inverse(); where pivots are to be positive, f(a + alpha diag(a)) with the first of 0, 0.001, 0.002, 0.004, ...
  /// that makes them so (Manteuffel 1980).
  template <class T, class F>
  void factor(la::Csr const& a, F const& f) {
    shifted_ = 0;
    for (alpha_ = 0;; alpha_ = std::max(2 * alpha_, 1e-3)) {
      try {
        return f(alpha_ == 0 ? a : with_larger_diagonal<T>(a, alpha_));
      } catch (NotPositive const& e) {
        ASTERISM_REQUIRE(alpha_ < 1000, value,
                         "{}: the pivot of {} is {} even with a diagonal that is {} times as large. The matrix is not positive "
                         "definite, nor near one that is.",
                         method_, row_name(e.row), e.pivot, 1 + alpha_);
      }
    }
  }
  /// What becomes of the pivot of row i, beside entries up to `largest`: its inverse, after a shift if it needs one.
  template <class T>
  T inverse(T pivot, double largest, std::size_t i) {
    bool const zero = !(double(magnitude(pivot)) > zero_ * largest);
    if (shift_ == "positive_definite" && !(double(real(pivot)) > zero_ * largest)) throw NotPositive{i, double(real(pivot))};
    if (zero && shift_ == "nonzero") {
      double const s = amount_ * (largest > 0 ? largest : 1);
      pivot = T(real_t<T>(double(real(pivot)) < 0 ? -s : s));
      ++shifted_;
    } else {
      ASTERISM_REQUIRE(!zero, value, "{}: the pivot of {} is {}, beside entries up to {}. Use {}.", method_, row_name(i),
                       double(magnitude(pivot)), largest, advice());
    }
    auto const out = T(1) / pivot;
    ASTERISM_REQUIRE(std::isfinite(double(magnitude(out))), value, "{}: the inverse pivot of {} is not finite.", method_, row_name(i));
    return out;
  }

  bool shifted() const { return shifted_ > 0 || alpha_ > 0; }
  /// Collective.
  void tell(comm::Communicator const& comm) const {
    if (auto const all = comm.sum(shifted_); all > 0 && comm.rank() == 0)
      log::info("{}: {} pivot(s) were shifted (-{}pc_factor_shift_type {}).", method_, all, prefix_, shift_);
    if (auto const most = comm.max(alpha_); most > 0 && comm.rank() == 0)
      log::info("{}: the diagonal was enlarged by up to {} of itself (-{}pc_factor_shift_type {}).", method_, most, prefix_, shift_);
  }

 private:
  struct NotPositive {
    std::size_t row;
    double pivot;
  };
  template <class T>
  static la::Csr with_larger_diagonal(la::Csr const& a, double alpha) {
    auto out = a;
    out.values = device::Array(a.values.bytes());
    auto const from = a.entries<T>(), to = out.entries<T>();
    std::copy(from.begin(), from.end(), to.begin());
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i)
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p)
        if (std::size_t(col[p]) == i) to[p] *= T(real_t<T>(1 + alpha));
    return out;
  }

  std::string row_name(std::size_t i) const { return rows_.own_entry_name(row_of_.empty() ? std::int64_t(i) : std::int64_t(row_of_[i])); }
  /// Of the options that this method has, under its prefix.
  std::string advice() const {
    std::string out;
    if (method_ != "icc") out += format("-{}pc_factor_matching true, ", prefix_);
    if (method_ != "ilut" && !prefix_.ends_with("mg_levels_")) out += format("-{}pc_type ilut, ", prefix_);
    return out +
           format("{}-{}pc_factor_shift_type {}", out.empty() ? "" : "or ", prefix_, method_ == "icc" ? "positive_definite" : "nonzero");
  }

  std::string prefix_, method_, shift_;
  double amount_ = 0, zero_ = 0, alpha_ = 0;
  la::Space rows_;
  std::int64_t shifted_ = 0;
  std::vector<std::int32_t> row_of_;  // empty: each its own
};

}  // namespace asterism::precond
