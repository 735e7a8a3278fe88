// A linear stencil on a domain of bricks, as an operator: products are calls of generated kernels.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "asterism/grid/bricks/brick_domain.hpp"
#include "asterism/grid/colouring.hpp"
#include "asterism/la/operator.hpp"
#include "asterism/stencil/table.hpp"

namespace asterism::grid {

/// What a kernel does, and with what.
enum class StencilForm : std::uint8_t {
  product,     ///< y = A x
  transposed,  ///< y = A^T x
  residual,    ///< y = b - A x
  smooth,      ///< y = x + w .* (b - A x)
};

/// A function that the stencil compiler made, or the one that reads tables (stencil/table.hpp).
struct StencilKernel {
  /// Of each grid of the kernel, in its order: one of these, or the number of a coefficient.
  static constexpr int x = -1, y = -2, b = -3, w = -4;
  void (*function)(stencil::Arguments const*) = nullptr;
  void const* program = nullptr;      ///< the table
  std::shared_ptr<void const> owner;  ///< of the code, or of the table
  std::vector<int> grids;
  std::vector<double> constants;  ///< in the kernel's order
  double flops = 0;               ///< of a point
};

/// Vectors are those of the domain's space; their padding is zero, and stays so. Bricks that need no copies of other ranks' are done while
/// these travel, straight from x into the room for ghosts behind it. Vectors of several columns are done column by column, in copies; so
/// are those whose memory is not aligned to 64 bytes.
class StencilOperator final : public la::Operator {
 public:
  /// coefficients: grids that do not change; their copies of other ranks' bricks are made here. Collective.
  StencilOperator(BrickDomain const& domain, Dtype dtype, StencilKernel product, std::vector<la::Vector> const& coefficients,
                  std::string name);
  la::Space const& range() const override { return s_->domain.space(); }
  la::Space const& domain() const override { return s_->domain.space(); }
  BrickDomain const& bricks() const { return s_->domain; }
  Dtype dtype() const override { return s_->dtype; }
  void apply(la::Vector const& x, la::Vector& y) const override;
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override;
  void residual(la::Vector const& b, la::Vector const& x, la::Vector& r) const override;
  void smooth(la::Vector const& b, la::Vector const& x, la::Vector const& w, la::Vector& y) const override;
  la::Vector diagonal() const override;
  std::optional<double> eigenvalue_bound() const override { return bound_; }
  /// By the function that was given.
  std::optional<Coarse> coarse() const override;
  std::vector<la::Vector> colours() const override;
  /// By the function that was given.
  std::shared_ptr<la::Operator const> converted_to(Dtype dtype) const override { return convert_ ? convert_(dtype) : nullptr; }
  std::string describe() const override { return s_->name; }

  // what is found out later, on all ranks

  /// A kernel of its own for what else would be made from products. No product is under way.
  void add(StencilForm form, StencilKernel kernel);
  bool has(StencilForm form) const { return s_->kernels.contains(form); }
  /// What makes the coarser operator, and kernels for more forms of this one, which multigrid needs. It is collective.
  struct WithForms {
    Coarse coarse;
    std::vector<std::pair<StencilForm, StencilKernel>> forms;
  };
  void set_coarse(std::function<std::optional<WithForms>()> make) { make_coarse_ = std::move(make); }
  void set_converted(std::function<std::shared_ptr<la::Operator const>(Dtype)> make) { convert_ = std::move(make); }
  void set_colouring(Colouring kind) { colouring_ = kind; }
  /// The padding of d is one.
  void set_diagonal(la::Vector d, std::optional<double> eigenvalue_bound);

 private:
  struct State {
    BrickDomain domain;
    Dtype dtype;
    std::map<StencilForm, StencilKernel> kernels;
    std::vector<la::Vector> coefficients;
    device::Array zeros;  // a brick
    std::string name;
  };
  void check(StencilKernel const& kernel) const;
  void run(StencilForm form, la::Vector const& x, la::Vector& y, la::Vector const* b, la::Vector const* w) const;
  void run_column(StencilForm form, la::Vector const& x, la::Vector& y, la::Vector const* b, la::Vector const* w) const;
  std::shared_ptr<State> s_;  // queued work holds it
  la::Vector diagonal_;
  std::optional<double> bound_;
  Colouring colouring_ = Colouring::none;
  std::function<std::optional<WithForms>()> make_coarse_;
  std::function<std::shared_ptr<la::Operator const>(Dtype)> convert_;
};

}  // namespace asterism::grid
