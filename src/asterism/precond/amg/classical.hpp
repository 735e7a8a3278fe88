// Classical multigrid: coarse unknowns are some of the fine ones, from which the others are interpolated (Ruge and Stueben 1987).
#pragma once
#include "asterism/precond/amg/coarsening/splitting.hpp"

namespace asterism::precond::amg {

enum class InterpolationType : std::uint8_t { extended, direct };

struct ClassicalOptions {
  CoarseningType coarsening = CoarseningType::pmis;
  InterpolationType interpolation = InterpolationType::extended;
  double max_row_sum = 0.9, truncation = 0;
  std::int64_t most_entries = 4;  ///< of a row of P; 0: all
};

/// Coarse and fine unknowns of a level, and what interpolation is made of.
template <class T>
struct Splitting {
  Rows<T> A;                    ///< rows of the level's unknowns, ghosts too, with the couplings within one component
  Buffer<std::uint8_t> marks;   ///< of each entry of A: whether the row depends on the column, and what else interpolation asks
  Buffer<std::int32_t> row_of;  ///< of each column of A: its row in A, or -1
  std::int32_t first = 0;       ///< my first row in A
  Buffer<std::int64_t> work;    ///< entries before each of my rows
  Buffer<std::int64_t> number;  ///< of each column of A: its coarse global index, or -1 if it is fine
  Layout coarse;                ///< owned as the fine unknowns are, in their order
};

/// Row i depends on j where m_ij >= threshold max_k m_ik, with m_ij = -Re(a_ij conj(a_ii)): for real matrices the couplings whose sign is
/// not the diagonal's (Ruge and Stueben 1987). A row whose sum is above max_row_sum |a_ii| depends on none. component: of each of my rows,
/// of which those of equal numbers are coupled (the unknown approach); none: all are. An error on all ranks where a diagonal entry is zero.
/// Collective.
template <class T>
Splitting<T> split(Rows<T> const& A, Layout const& layout, std::int64_t components, Buffer<std::int32_t> const& component, double threshold,
                   ClassicalOptions const& options, comm::Cancellation& cancel);

/// P: a row of the identity for a coarse unknown. extended: extended+i, from coarse unknowns within two steps (De Sterck, Falgout, Nolting,
/// Yang 2008, eq. 4.10), or direct where its diagonal is zero; direct: from those next to it (Stueben 2001). Of a row's weights the
/// `most_entries` largest stay, none below `truncation` times the largest; they are scaled to the sum of all. A fine unknown without
/// such coarse ones has an empty row. A fine unknown whose row is long (more than 10 sqrt(n) entries, and 100) brings no coarse ones: its
/// coupling is shared among those that are there without it, so that a few dense rows do not make the work quadratic. Collective.
template <class T>
Rows<T> classical_interpolation(Splitting<T> const& splitting, ClassicalOptions const& options, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
