// Stencils as tables, for machines without a compiler: a kernel that reads what it does at each point.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/base/dtype.hpp"

namespace asterism::stencil {

/// `struct Arguments` in the text of generated kernels (python/asterism/stencil/codegen/prelude.py).
struct Arguments {
  long bricks;
  int const *visit, *neighbours, *origin, *extent;
  void* const* grids;
  void* const* ghosts;
  long owned;
  void const* constants;
  double* reductions;
  int const *children, *fine_neighbours, *fine_extent;
  long fine_owned;
  void const* program;      ///< the Table
  int first, last;          ///< planes of each brick
  int const* const* slots;  ///< null, or of each grid null, or where its bricks are
  int streams;              ///< tables do not
};

enum class Op : std::uint8_t {
  number,
  constant,
  copy,
  add,
  multiply,
  divide,
  absolute,
  root,
  exponential,
  logarithm,
  sine,
  cosine,
  minimum,
  maximum,
  where,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  both,
  either,
  negation,
  sum,
  fine,
  index,
  remainder,
  test
};
/// Throws for a name that there is not.
Op op_from_name(std::string const& name);

/// What is computed once in a call: `out` is the place of the instruction in its list.
struct ScalarInstruction {
  Op op;
  int a, b, c;  ///< scalars before it; of a constant its number
  std::complex<double> value;
};

/// add + the sum of f[axis] * (index along the axis) + n[axis] * (number of points)
struct WholeNumber {
  std::int64_t add;
  std::array<std::int64_t, 3> f, n;
};

/// What is computed for all points of a plane of a brick. Registers hold a value for each; conditions are 0 or 1.
struct Instruction {
  Op op;
  int out, a, b, c;       ///< registers; copy: a is a scalar; fine: a is a grid; remainder: b is the divisor; test: b is the comparison
  int first, count;       ///< of a sum: its terms; index, remainder, test: the whole number
  std::array<int, 3> at;  ///< of fine: 2 * point + at is read
};

/// Of a sum: a scalar times a grid's value at an offset, or times a register.
struct Term {
  int scalar, grid, reg;  ///< grid < 0: the register
  std::array<int, 3> at;
};

/// A register goes to a grid at stride * point + parity, or into a reduction.
struct TableStore {
  int reg, grid, slot, stride;
  std::array<int, 3> parity;
};

enum class Reduction : std::uint8_t { sum, maximum, minimum };

struct Table {
  Dtype dtype = Dtype::float64;
  std::array<int, 3> brick{};
  int missing = 0;    ///< of three axes, the first ones
  bool fine = false;  ///< stores go to the finer space, and its extent bounds them
  int registers = 0;
  std::vector<ScalarInstruction> scalars;
  std::vector<Instruction> code;
  std::vector<Term> terms;
  std::vector<WholeNumber> wholes;
  std::vector<TableStore> stores;
  std::vector<Reduction> reductions;
  int grids = 0, constants = 0;

  /// Throws InternalError for a number that is out of its range.
  void check() const;
};

/// A function as those that a compiler made: Arguments::program is the Table.
void run_table(Arguments const* a);

}  // namespace asterism::stencil
