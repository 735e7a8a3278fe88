// What a product and its plan do alike: checks, the dtype, factors as rows.
#pragma once
#include <span>
#include <string>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/la/products/matrix_product.hpp"
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// "3 x 4"
std::string size_text(Space const& rows, Space const& columns);
/// Throws on all ranks where the factors cannot be multiplied. Collective.
void check_factors(std::span<Factor const> factors);
/// That holds all of them.
Dtype dtype_of(std::span<Factor const> factors);
/// For the line that people see.
std::string describe(std::span<Factor const> factors);

template <class T>
Rows<T> rows_of(Factor const& f, comm::Cancellation& cancel) {
  auto rows = rows_of<T>(f.matrix.converted(dtype_v<T>));
  if (f.form == Form::plain) return rows;
  return transpose(rows, f.matrix.range(), f.matrix.domain(), f.form == Form::conjugate_transposed, cancel);
}

/// As matrix_of(), with all that is known of the rows.
template <class T>
Matrix matrix_on(Rows<T> rows, Space const& range, Layout const& columns) {
  auto C = matrix_of(std::move(rows), range, columns);
  C.set_space(range);
  return C;
}
/// What is known of the factor's rows. A matrix knows its own rows alone; a square one's columns mean the same.
Space const& space_of(Factor const& f);
/// What is known of a product's rows. If it is square: all that the last factor knows, as the product maps to nearly zero what that does;
/// if that is nothing, the blocks of unknowns of the first one. Collective.
Space space_of_product(std::span<Factor const> factors);

/// f(a tag of T, its Cancellation) as a collective call, timed, with a line for people.
template <class F>
auto run_product(comm::Communicator const& comm, Dtype dtype, char const* event, std::string what, F const& f) {
  return comm::collective(comm, event, [&] {
    profile::Scope const scope(profile::event(event));
    Progress progress(std::move(what), 0);
    comm::Cancellation cancel(comm, progress);
    return with_dtype(dtype, [&](auto tag) { return f(tag, cancel); });
  });
}

}  // namespace asterism::la
