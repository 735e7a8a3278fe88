#include "asterism/precond/each_rank.hpp"

namespace asterism::precond {
namespace {

Matrix on_one_rank(la::Csr const& block, Space const& rows) {
  auto A = Matrix::from_blocks(rows, rows, block, la::Csr(block.dtype, block.rows, 0, 0), {});
  A.set_space(rows);
  return A;
}

}  // namespace

void EachRank::make(Nest const& nest, la::Csr const& block, Space const& rows) {
  auto const sub = nest.config.nested("sub_");
  bool const iterates = sub.options->find(sub.prefix + "ksp_type");
  comm::agree(space_.comm(), [&] {
    auto A = on_one_rank(block, rows);
    inner_ = iterates ? nest.make_solver(sub, std::make_shared<Matrix>(std::move(A)), "ilu") : nest.make_inner(sub, A, "ilu");
  });
  look_at_all();
}

bool EachRank::update_inner(la::Csr const& block, Space const& rows) {
  bool kept = false;
  comm::agree(space_.comm(), [&] { kept = inner_->update(on_one_rank(block, rows)); });
  look_at_all();
  return space_.comm().min(std::int64_t(kept)) == 1;
}

void EachRank::look_at_all() {
  symmetric_ = space_.comm().min(std::int64_t(inner_->symmetric())) == 1;
  varies_ = space_.comm().max(std::int64_t(inner_->varies())) == 1;
}

Space rows_of_block(std::int64_t count, std::function<std::string(std::int64_t)> names) {
  return Space(Layout(comm::Communicator(), count)).with_names(std::move(names));
}

}  // namespace asterism::precond
