#include "asterism/solve/scaling.hpp"

#include <algorithm>
#include <cmath>

namespace asterism::solve {
namespace {

using la::Operator;
using la::Vector;

class ScaledOperator final : public Operator {
 public:
  ScaledOperator(std::shared_ptr<Operator const> inner, MatrixScale const& by) : inner_(std::move(inner)), by_(by) {}
  la::Space const& range() const override { return inner_->range(); }
  la::Space const& domain() const override { return inner_->domain(); }
  Dtype dtype() const override { return inner_->dtype(); }
  void apply(Vector const& x, Vector& y) const override {
    inner_->apply(x, y);
    scale_product(y);
  }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    inner_->apply_transpose(x, y, conjugate);
    scale_product(y);
  }
  Vector diagonal() const override {
    auto d = inner_->diagonal();
    scale_product(d);
    return d;
  }
  std::optional<double> eigenvalue_bound() const override { return inner_->eigenvalue_bound(); }
  std::vector<Vector> colours() const override { return inner_->colours(); }
  std::shared_ptr<Operator const> converted_to(Dtype dtype) const override {
    auto other = inner_->converted_to(dtype);
    return other ? std::make_shared<ScaledOperator>(std::move(other), by_) : nullptr;
  }
  std::optional<Coarse> coarse(la::CoarseRule const& rule) const override {
    auto next = inner_->coarse(rule);
    if (next) next->A = std::make_shared<ScaledOperator>(next->A, by_);
    return next;
  }
  bool coarsens() const override { return inner_->coarsens(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  void scale_product(Vector& y) const {
    scale_by_powers(y, std::vector<int>(std::size_t(y.columns()), by_.exponent));
    if (by_.negated) scale(-1.0, y);
  }
  std::shared_ptr<Operator const> inner_;
  MatrixScale by_;
};

int exponent_of(double v) {
  int e = 0;
  std::frexp(v, &e);
  return e;
}

int exponent_beyond(double largest, int safe) {
  if (!(largest > 0)) return 0;
  int const e = exponent_of(largest);
  return std::abs(e) > safe ? -std::min(e, 1023) : 0;  // what undoes it is finite too
}

}  // namespace

int scaling_exponent(double largest, Dtype dtype) {
  return exponent_beyond(largest, real_of(dtype) == Dtype::float32 ? 30 : 100);  // 1e9, 1e30: matrices in SI units are not copied
}

std::shared_ptr<Operator const> scaled(std::shared_ptr<Operator const> const& A, MatrixScale const& by) {
  if (by.is_one()) return A;
  if (auto const* const matrix = A->matrix()) return std::make_shared<la::Matrix>(matrix->scaled(by.exponent, by.negated));
  return std::make_shared<ScaledOperator>(A, by);
}

std::shared_ptr<Operator const> scaled_inverse(std::shared_ptr<Operator const> const& M, MatrixScale const& by) {
  if (by.is_one()) return M;
  return std::make_shared<ScaledOperator>(M, MatrixScale{-by.exponent, by.negated});
}

ScaledColumns::ScaledColumns(MatrixScale const& scale, double largest_A, la::Entries const& b, la::Entries const& x, Dtype dtype)
    : scale_(scale) {
  for (std::size_t j = 0; j < b.largest.size(); ++j) {
    int const e = exponent_beyond(b.largest[j], 30);  // residuals 1e-16 times as large must fit a float32 preconditioner
    exponents_.push_back(e);
    if (x.largest[j] == 0 || b.largest[j] == 0) continue;
    // A times the guess, as b' will be; in exponents, since the numbers may be out of range
    int const of_product = exponent_of(x.largest[j]) - scale.exponent + exponent_of(std::max(largest_A, 1e-300)) + e;
    if (of_product > (real_of(dtype) == Dtype::float32 ? 60 : 200)) dropped_.push_back(j);
  }
}

bool ScaledColumns::nothing_to_do() const {
  return scale_.is_one() && dropped_.empty() && std::all_of(exponents_.begin(), exponents_.end(), [](int e) { return e == 0; });
}

double ScaledColumns::unit(std::size_t j) const { return std::ldexp(1.0, -exponents_[j]); }

Vector ScaledColumns::scaled_b(Vector const& b) const {
  auto out = b.like();
  copy(b, out);
  scale_by_powers(out, exponents_);
  return out;
}

Vector ScaledColumns::scaled_guess(Vector const& x) const {
  auto out = x.like();
  rescale(x, out);
  if (dropped_.empty()) return out;
  std::vector<la::Scalar::Value> keep(exponents_.size(), 1.0);
  for (auto const j : dropped_) keep[j] = 0.0;
  auto zero = x.like();
  fill(zero, 0.0);
  copy_where(la::Scalar(std::move(keep)), out, zero);
  return zero;
}

void ScaledColumns::rescale(Vector const& x, Vector& to) const {
  auto by = exponents_;
  for (auto& e : by) e -= scale_.exponent;
  copy(x, to);
  scale_by_powers(to, by);
  if (scale_.negated) scale(-1.0, to);
}

void ScaledColumns::unscale(Vector const& from, Vector& x) const {
  auto by = exponents_;
  for (auto& e : by) e = scale_.exponent - e;
  copy(from, x);
  scale_by_powers(x, by);
  if (scale_.negated) scale(-1.0, x);
}

}  // namespace asterism::solve
