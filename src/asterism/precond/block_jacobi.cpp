// Each rank solves with its own diagonal block, by any preconditioner under the prefix sub_.
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

class BlockJacobi final : public Preconditioner {
 public:
  BlockJacobi(Nest const& nest, Matrix const& A) : Preconditioner(A) { inner_ = made_by_each_rank(nest, A.diagonal_block(), A.comm()); }
  bool update(Matrix const& A) override { return updated_by_each_rank(*inner_, A.diagonal_block(), A.comm()); }
  bool updated_from_scratch() const override { return inner_->updated_from_scratch(); }
  void apply(Vector const& x, Vector& y) const override {
    auto mine = own(y);
    inner_->apply(own(x), mine);
  }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    auto mine = own(y);
    inner_->apply_transpose(own(x), mine, conjugate);
  }
  std::string describe() const override { return format("block jacobi, one block a rank, sub: {}", inner_->describe()); }
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }
  bool symmetric() const override { return inner_->symmetric(); }
  bool varies() const override { return inner_->varies(); }
  void set_hermitian(bool yes) override { inner_->set_hermitian(yes); }

 private:
  Vector own(Vector const& v) const { return Vector::wrap(inner_->range(), v.dtype(), v.columns(), v.data(), v.queue()); }
  PreconditionerPtr inner_;
};

}  // namespace

PreconditionerEntry block_jacobi_entry() {
  static OptionTable const none;
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr { return std::make_shared<BlockJacobi>(nest, A); }, &none,
          "each rank's diagonal block, by -sub_pc_type (default ilu), or solved with it by -sub_ksp_type", true};
}

}  // namespace asterism::precond
