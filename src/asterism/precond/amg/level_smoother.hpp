// Which smoother the levels of a hierarchy get: its options, and what is made of a level's rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/precond/amg/row_facts.hpp"
#include "asterism/precond/multigrid/cycle.hpp"

namespace asterism::precond::amg {

using la::Layout, la::Rows;

struct SmootherOptions {
  std::string method, kind;  ///< -mg_levels_ksp_type, -mg_levels_pc_type
  bool l1 = false;           ///< sums of rows instead of the diagonal
  ChebyshevKind chebyshev = ChebyshevKind::opt_fourth;
  std::int64_t given_before = -1, given_after = -1;  ///< of the steps; -1: not given
  Steps steps;
  Nest nest;  ///< for preconditioners of levels

  /// Neither the method nor what it multiplies with is given: it is chosen.
  bool is_open() const { return method == "auto"; }
  bool steps_are_given() const { return given_before >= 0 || given_after >= 0; }
  /// Those that are given; else as many as is usual before the coarse correction, and as many after it.
  Steps steps_or(std::int64_t usual) const;
  /// What is chosen: SPAI-0, or a polynomial whose degree a trial finds.
  SmootherOptions chosen(bool spai) const;
  /// Made of a matrix's rows in the dtype of the levels, not of their sums.
  bool needs_matrix() const { return kind == "sor" || kind == "color_sor" || is_nested(); }
  /// A preconditioner with options of its own, which are read when it is made.
  bool is_nested() const { return kind == "ilu" || kind == "icc"; }
  /// From now on a nested one is made from a copy of these options: those at hand may be gone when new values come.
  void keep_options();

 private:
  struct Kept {
    Options options;
    std::vector<EffectiveOption> record;
  };
  std::shared_ptr<Kept> kept_;
};
OptionTable const& smoother_table();
/// From options of that table, with the defaults that depend on each other put in.
SmootherOptions smoother_options(Nest const& nest, OptionReader& r);

/// Of a level whose D^-1 A has that spectral radius, or the bound of it.
template <class T>
SmootherPtr smoother_of_rows(SmootherOptions const& options, Rows<T> const& A, Layout const& layout, RowFacts<T> const& facts,
                             double radius, Dtype dtype);
/// Of options that need it. Collective.
SmootherPtr smoother_of_matrix(SmootherOptions const& options, Matrix const& A, bool hermitian);

}  // namespace asterism::precond::amg
