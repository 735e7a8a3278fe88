#include "asterism/la/products/matrix_product.hpp"

#include <bit>

#include "asterism/base/format.hpp"
#include "asterism/la/products/factors.hpp"
#include "asterism/la/products/galerkin.hpp"
#include "asterism/la/products/sparse_product.hpp"

namespace asterism::la {
namespace {

/// A number that ranks disagree on would make a matrix of two.
void require_same(comm::Communicator const& comm, std::complex<double> a, char const* call) {
  bool const same =
      comm.same_on_all_ranks(std::bit_cast<std::int64_t>(a.real())) && comm.same_on_all_ranks(std::bit_cast<std::int64_t>(a.imag()));
  ASTERISM_REQUIRE(same, value, "{}: the ranks give different numbers ({} + {}i on rank {}).", call, a.real(), a.imag(), comm.rank());
}

/// The values times a number, which is double or Complex<double>: in double precision, rounded once.
template <class T, class Number>
Array multiples(Number alpha, Csr const& block) {
  using Wide = std::conditional_t<is_complex_v<T>, Complex<double>, double>;
  using Out = std::conditional_t<is_complex_v<Number> && !is_complex_v<T>, Complex<T>, T>;
  Array out(std::size_t(block.nnz()) * sizeof(Out));
  device::Executor executor;
  device::parallel_for(executor, block.nnz(), [=, from = block.values.as<T>(), to = out.as<Out>()](std::int64_t i) {
    Wide const v(from[i]);
    // a real number times each part: zero times an infinite other part would be NaN
    if constexpr (is_complex_v<Wide> && !is_complex_v<Number>) to[i] = Out(Complex<double>(v.re * alpha, v.im * alpha));
    else if constexpr (is_complex_v<Number> && !is_complex_v<Wide>) to[i] = Out(Complex<double>(v * alpha.re, v * alpha.im));
    else to[i] = Out(v * alpha);
  });
  return out;
}

}  // namespace

Matrix product(std::span<Factor const> factors) {
  check_factors(factors);
  auto const& first = factors.front();
  auto const& last = factors.back();
  auto const* const event = factors.size() == 2 ? "MatMatMult" : "MatMatMatMult";
  return run_product(first.matrix.comm(), dtype_of(factors), event, describe(factors), [&](auto tag, comm::Cancellation& cancel) {
    using T = typename decltype(tag)::type;
    auto C = rows_of<T>(last, cancel);
    auto i = factors.size() - 1;
    for (; i >= 2; i -= 2)
      C = triple_product(rows_of<T>(factors[i - 2], cancel), rows_of<T>(factors[i - 1], cancel), C, factors[i - 1].range(),
                         factors[i - 1].domain(), last.domain(), cancel);
    if (i == 1) {
      auto const A = rows_of<T>(first, cancel);
      C = sparse_product(A, Part::all, wide_rows(C, first.domain(), last.domain(), A.map), cancel);
    }
    return matrix_on(std::move(C), space_of_product(factors), last.domain());
  });
}

Matrix sum(std::complex<double> alpha, Matrix const& A, std::complex<double> beta, Matrix const& B) {
  auto const& comm = A.comm();
  ASTERISM_REQUIRE(B.comm() == comm, comm, "sum: the matrices are on different communicators ({} and {} ranks).", comm.size(),
                   B.comm().size());
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(A.global_rows() == B.global_rows() && A.global_cols() == B.global_cols(), shape, "sum of a {} and a {} matrix.",
                     size_text(A.range(), A.domain()), size_text(B.range(), B.domain()));
    ASTERISM_REQUIRE(A.range().fits(B.range()) && A.domain().fits(B.domain()), shape,
                     "sum: the ranks share the rows or columns of the two matrices otherwise ({} and {} rows on rank {}). Move one of them "
                     "(am.Redistribution, am.Submatrix).",
                     A.range().local_size(), B.range().local_size(), comm.rank());
  });
  require_same(comm, alpha, "sum");
  require_same(comm, beta, "sum");
  auto dtype = promote(A.dtype(), B.dtype());
  if (alpha.imag() != 0 || beta.imag() != 0) dtype = promote(dtype, Dtype::complex64);
  return run_product(comm, dtype, "MatAXPY", "sum of matrices", [&](auto tag, comm::Cancellation& cancel) {
    using T = typename decltype(tag)::type;
    auto const a = rows_of<T>(A.converted(dtype)), b = rows_of<T>(B.converted(dtype));
    auto C = sparse_sum(from_complex<T>(alpha), a, from_complex<T>(beta), b, A.domain(), cancel);
    return matrix_on(std::move(C), A.range().has_meaning() ? A.range() : B.range(), A.domain());
  });
}

Matrix scaled(std::complex<double> alpha, Matrix const& A) {
  require_same(A.comm(), alpha, "a A");
  auto const dtype = alpha.imag() == 0 ? A.dtype() : promote(A.dtype(), Dtype::complex64);
  auto const whole = A.general();
  auto const times_alpha = [&](Csr const& block) {
    return with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (alpha.imag() == 0) return multiples<T>(alpha.real(), block);
      return multiples<T>(Complex<double>(alpha), block);
    });
  };
  auto const C =
      whole.with_block_values(dtype, times_alpha(whole.diagonal_block()), times_alpha(whole.coupling_block()), device::Memory::host);
  if (!A.half()) return C;
  if (alpha.imag() == 0) return C.symmetric(A.half()->kind());
  bool const hermitian = is_complex(A.dtype()) && A.half()->kind() == SymmetricHalf::Kind::hermitian;  // C is not
  return hermitian ? C : C.symmetric(SymmetricHalf::Kind::symmetric);
}

Matrix transposed(Matrix const& A, bool conjugate) {
  ASTERISM_REQUIRE(A.comm().same_on_all_ranks(conjugate), value, "transpose: conjugate is {} on rank {} and not on others.", conjugate,
                   A.comm().rank());
  return run_product(A.comm(), A.dtype(), "MatTranspose", "transpose", [&](auto tag, comm::Cancellation& cancel) {
    using T = typename decltype(tag)::type;
    Factor const f{A, conjugate ? Form::conjugate_transposed : Form::transposed};
    return matrix_on(rows_of<T>(f, cancel), space_of(f), A.range());
  });
}

}  // namespace asterism::la
