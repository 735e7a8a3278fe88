// Each rank solves with its own diagonal block, by any preconditioner under the prefix sub_.
#include "asterism/precond/each_rank.hpp"

namespace asterism::precond {
namespace {

/// My part of a space, with its nodes and what is known of them.
Space own_part(Space const& all) {
  auto out =
      rows_of_block(all.local_size(), [all](std::int64_t place) { return all.own_entry_name(place); }).with_block_size(all.block_size());
  auto const mine = [](comm::Layout const& to, Vector const& v) {
    return v ? Vector::wrap(to, v.dtype(), v.columns(), v.data(), v.queue()) : Vector();
  };
  if (all.block_size() > 1) out = out.with_coordinates([all, mine, nodes = out.nodes()] { return mine(nodes, all.coordinates()); });
  return out.with_near_null_space(mine(out, all.near_null_space()));
}

class BlockJacobi final : public EachRank {
 public:
  BlockJacobi(Nest const& nest, Matrix const& A) : EachRank(A) { make(nest, A.diagonal_block(), own_part(A.range())); }
  bool update(Matrix const& A) override { return update_inner(A.diagonal_block(), own_part(A.range())); }
  void apply(Vector const& x, Vector& y) const override {
    auto mine = own(y);
    inner().apply(own(x), mine);
  }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    auto mine = own(y);
    inner().apply_transpose(own(x), mine, conjugate);
  }
  std::string describe() const override { return format("block jacobi, one block a rank, sub: {}", inner().describe()); }

 private:
  Vector own(Vector const& v) const { return Vector::wrap(inner().range(), v.dtype(), v.columns(), v.data(), v.queue()); }
};

}  // namespace

PreconditionerEntry block_jacobi_entry() {
  static OptionTable const none;
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr { return std::make_shared<BlockJacobi>(nest, A); }, &none,
          "each rank's diagonal block, by -sub_pc_type (default ilu), or solved with it by -sub_ksp_type", true};
}

}  // namespace asterism::precond
