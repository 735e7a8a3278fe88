// A linear stencil on a domain of bricks, as an operator: products are calls of generated kernels.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "asterism/grid/bricks/stencil_call.hpp"
#include "asterism/grid/colouring.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// Of the rows and columns of a matrix.
enum class EntryOrder : std::uint8_t {
  bricks,         ///< as in vectors, with ones where a row is padding
  lexicographic,  ///< each rank's points, without the padding
};

/// Vectors are those of the domain's space; their padding is zero, and stays so. Bricks that need no copies of other ranks' are done while
/// these travel, straight from x into the room for ghosts behind it. Vectors of several columns are done column by column, in copies; so
/// are those whose memory is not aligned to 64 bytes. Complex adjoints are transposes of conjugates: two passes over the vectors besides.
class StencilOperator final : public la::Operator {
 public:
  /// coefficients: grids that do not change; their copies of other ranks' bricks are made here. Collective.
  StencilOperator(BrickDomain const& domain, Dtype dtype, StencilKernel product, std::vector<la::Vector> const& coefficients,
                  std::string name);
  la::Space const& range() const override { return s_->domain.space(); }
  la::Space const& domain() const override { return s_->domain.space(); }
  BrickDomain const& bricks() const { return s_->domain; }
  Dtype dtype() const override { return s_->dtype; }
  bool takes_columns_apart() const override { return true; }
  void apply(la::Vector const& x, la::Vector& y) const override;
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override;
  void residual(la::Vector const& b, la::Vector const& x, la::Vector& r) const override;
  void smooth(la::Vector const& b, la::Vector const& x, la::Vector const& w, la::Vector& y) const override;
  /// If the kernels can be made. Weights that are a number times the inverse diagonal, or two numbers for even and odd sums of indices,
  /// need no vector then.
  std::shared_ptr<la::StepSequence const> steps(std::vector<la::Step> const& steps, std::int64_t at_once) const override;
  la::Vector diagonal() const override;
  std::optional<double> eigenvalue_bound() const override { return bound_; }
  /// By the function that was given. From then on residuals have a kernel of their own, if it can be made.
  std::optional<Coarse> coarse(la::CoarseRule const& rule) const override;
  bool coarsens() const override { return bool(make_coarse_); }
  std::vector<la::Vector> colours() const override;
  /// By the function that was given.
  std::shared_ptr<la::Operator const> converted_to(Dtype dtype) const override { return convert_ ? convert_(dtype) : nullptr; }
  std::string describe() const override { return s_->name; }
  /// A product for each colour: 2 reach + 1 along an axis, less than twice that if it is periodic, and never more than points. Collective.
  la::Matrix matrix_in(EntryOrder order) const;
  /// In the order of bricks, once it is known how far the stencil reads.
  std::shared_ptr<la::Matrix const> assembled() const override;

  // what is found out later, on all ranks

  /// A kernel of its own for what else would be made from products. No product is under way.
  void add(StencilForm form, StencilKernel kernel);
  bool has(StencilForm form) const { return s_->has(form); }
  /// What makes the coarser operator. It is collective.
  void set_coarse(std::function<std::optional<Coarse>(la::CoarseRule const&)> make) { make_coarse_ = std::move(make); }
  void set_converted(std::function<std::shared_ptr<la::Operator const>(Dtype)> make) { convert_ = std::move(make); }
  /// What makes kernels of forms that multigrid asks for, and how far the stencil reads along its axes; transposes: of the transpose too.
  /// make is collective.
  void set_maker(std::function<std::vector<StencilKernel>(std::vector<StencilForm> const&)> make, std::vector<int> const& reach,
                 bool transposes = false);
  void set_colouring(Colouring kind) { colouring_ = kind; }
  /// bound: of the eigenvalues of D^-1 A. Whatever the padding of d, it becomes one.
  void set_diagonal(la::Vector d, std::optional<double> bound);
  /// With Gershgorin's bound, if no diagonal entry is zero. row_sums: of magnitudes of entries. Collective.
  void set_diagonal(la::Vector d, la::Vector const& row_sums);
  /// At which ends of each axis vectors are zero beyond the grid: where rows of most points of the end couple to what is beyond, as much
  /// as to a quarter of what is within. They do if the sum of a row is that large. False at ends of periodic axes, and of those with one
  /// point. Seven products. Collective.
  std::array<std::array<bool, 2>, 3> zero_beyond() const;

 private:
  void check(StencilKernel const& kernel) const;
  /// Makes those of these kernels that are not there, together. Collective.
  void need(std::vector<StencilForm> forms) const;
  void run(StencilForm form, la::Vector const& x, la::Vector& y, la::Vector const* b, la::Vector const* w) const;
  std::shared_ptr<StencilState> s_;  // queued work holds it
  la::Vector diagonal_;
  std::optional<double> bound_;
  bool makes_transpose_ = false;
  Colouring colouring_ = Colouring::none;
  std::function<std::optional<Coarse>(la::CoarseRule const&)> make_coarse_;
  std::function<std::vector<StencilKernel>(std::vector<StencilForm> const&)> make_kernels_;
  std::function<std::shared_ptr<la::Operator const>(Dtype)> convert_;
};

}  // namespace asterism::grid
