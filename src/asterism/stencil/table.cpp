#include "asterism/stencil/table.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"
#include "asterism/stencil/table.kernels.hpp"

namespace asterism::stencil {

namespace {
constexpr std::array<char const*, 29> op_names = {
    "number", "constant", "copy", "+",  "*",  "/",  "abs", "sqrt", "exp", "log", "sin",  "cos",   "min",       "max", "where",
    "<",      "<=",       ">",    ">=", "==", "!=", "&",   "|",    "~",   "sum", "fine", "index", "remainder", "test"};

void within(std::int64_t value, std::int64_t end, char const* what) {
  ASTERISM_REQUIRE(value >= 0 && value < end, internal, "a stencil's table has the {} {} of {}", what, value, end);
}
bool takes(Op op, int argument) {
  switch (op) {
    case Op::absolute:
    case Op::root:
    case Op::exponential:
    case Op::logarithm:
    case Op::sine:
    case Op::cosine:
    case Op::negation: return argument < 1;
    case Op::where: return true;
    case Op::number:
    case Op::constant:
    case Op::copy:
    case Op::sum:
    case Op::fine:
    case Op::index:
    case Op::remainder:
    case Op::test: return false;
    default: return argument < 2;
  }
}
}  // namespace

Op op_from_name(std::string const& name) {
  auto const found = std::find(op_names.begin(), op_names.end(), name);
  ASTERISM_REQUIRE(found != op_names.end(), internal, "a stencil's table has no operation '{}'", name);
  return Op(found - op_names.begin());
}

void Table::check() const {
  within(missing, 3, "missing axes");
  for (int axis = 0; axis < 3; ++axis) {
    ASTERISM_REQUIRE(brick[std::size_t(axis)] > 0, internal, "a stencil's table has a brick without points");
    if (axis < missing) within(brick[std::size_t(axis)] - 1, 1, "points of a missing axis");
  }
  for (std::size_t s = 0; s < scalars.size(); ++s) {
    auto const& i = scalars[s];
    if (i.op == Op::constant) within(i.a, constants, "constant");
    int const arguments[3] = {i.a, i.b, i.c};
    for (int m = 0; m < 3; ++m)
      if (takes(i.op, m)) within(arguments[m], std::int64_t(s), "scalar");
  }
  auto const number_of_scalars = std::int64_t(scalars.size());
  for (auto const& i : code) {
    within(i.out, registers, "register");
    int const arguments[3] = {i.a, i.b, i.c};
    for (int m = 0; m < 3; ++m)
      if (takes(i.op, m)) within(arguments[m], registers, "register");
    if (i.op == Op::copy) within(i.a, number_of_scalars, "scalar");
    if (i.op == Op::fine) within(i.a, grids, "grid");
    if (i.op == Op::remainder) within(i.b - 1, std::int64_t(1) << 31, "divisor");
    if (i.op == Op::test) within(i.b - int(Op::less), 6, "comparison");
    if (i.op == Op::index || i.op == Op::remainder || i.op == Op::test) within(i.first, std::int64_t(wholes.size()), "whole number");
    if (i.op == Op::sum) {
      within(i.count - 1, std::int64_t(terms.size()), "number of terms");
      within(i.first, std::int64_t(terms.size()) - i.count + 1, "term");
    }
  }
  for (auto const& t : terms) {
    within(t.scalar, number_of_scalars, "scalar");
    t.grid < 0 ? within(t.reg, registers, "register") : within(t.grid, grids, "grid");
  }
  for (auto const& s : stores) {
    within(s.reg, registers, "register");
    s.grid < 0 ? within(s.slot, std::int64_t(reductions.size()), "reduction") : within(s.grid, grids, "grid");
    within(s.stride - 1, 2, "stride");
    for (int p : s.parity) within(p, s.stride, "parity");
  }
}

void run_table(Arguments const* a) {
  auto const& table = *static_cast<Table const*>(a->program);
  with_dtype(table.dtype, [&](auto tag) { kernel::run_table<typename decltype(tag)::type>(table, *a); });
}

}  // namespace asterism::stencil
