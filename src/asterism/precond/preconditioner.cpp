#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

std::map<std::string, PreconditionerEntry> const& preconditioners() {
#define NAMED(name, function) {name, function##_entry()},
  static std::map<std::string, PreconditionerEntry> const all = {ASTERISM_PRECONDITIONERS(NAMED){"gamg", amg_entry()}};  // PETSc's name
#undef NAMED
  return all;
}

void Preconditioner::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  if (conjugate || !is_complex(dtype_)) return apply_adjoint(x, y);
  auto conjugated = x.like();  // M^T x = conj(M^H conj(x))
  la::conjugate(x, conjugated);
  apply_adjoint(conjugated, y);
  la::conjugate(y, y);
}

void Preconditioner::apply_adjoint(Vector const& x, Vector& y) const {
  ASTERISM_REQUIRE(self_adjoint_, unsupported,
                   "the preconditioner '{}' has no transpose unless the matrix is Hermitian. Use -pc_type ilu, jacobi or none.",
                   describe());
  apply(x, y);
}

namespace {
/// A block of mine as a matrix of this process alone.
Matrix on_one_rank(la::Csr const& block) {
  Layout const alone(comm::Communicator(), block.rows);
  return Matrix::from_blocks(alone, alone, block, la::Csr(block.dtype, block.rows, 0, 0), {});
}
}  // namespace

PreconditionerPtr made_by_each_rank(Nest const& nest, la::Csr const& block, comm::Communicator const& comm) {
  PreconditionerPtr out;
  auto const sub = nest.config.nested("sub_");
  bool const iterates = sub.options->find(sub.prefix + "ksp_type");
  comm::agree(comm, [&] {
    auto A = on_one_rank(block);
    out = iterates ? nest.make_solver(sub, std::make_shared<Matrix>(std::move(A)), "ilu") : nest.make_inner(sub, A, "ilu");
  });
  return out;
}

bool updated_by_each_rank(Preconditioner& inner, la::Csr const& block, comm::Communicator const& comm) {
  bool kept = false;
  comm::agree(comm, [&] { kept = inner.update(on_one_rank(block)); });
  return comm.min(std::int64_t(kept)) == 1;
}

/// low(x, v) with x in its precision, and v to work in.
template <class F>
void Cast::in_precision(Vector const& x, F const& low) const {
  auto const work = work_.lease(x, [&] {
    Vector const u(x.space(), inner_->dtype(), x.columns(), x.queue());
    return std::pair(u, u.like());
  });
  copy(x, work->first);
  low(work->first, work->second);
}

void Cast::apply(Vector const& x, Vector& y) const {
  in_precision(x, [&](Vector const& u, Vector& v) {
    inner_->apply(u, v);
    copy(v, y);
  });
}

void Cast::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  in_precision(x, [&](Vector const& u, Vector& v) {
    inner_->apply_transpose(u, v, conjugate);
    copy(v, y);
  });
}

std::string Cast::describe() const { return format("{} in {}", inner_->describe(), name_of(inner_->dtype())); }
std::string Cast::report() const { return inner_->report(); }

}  // namespace asterism::precond
