#include "asterism/precond/multigrid/level_precision.hpp"

namespace asterism::precond {
namespace {

class ConvertedTransfer : public Operator {
 public:
  ConvertedTransfer(OperatorPtr transfer, Dtype coarse) : transfer_(std::move(transfer)), coarse_(coarse) {}
  Space const& range() const override { return transfer_->range(); }
  Space const& domain() const override { return transfer_->domain(); }
  std::string describe() const override { return format("{}, coarse vectors {}", transfer_->describe(), name_of(coarse_)); }

 protected:
  auto lease(Vector const& like, Space const& space) const {
    return work_.lease(like, [&] { return Vector(space, transfer_->dtype(), like.columns(), like.queue()); });
  }
  OperatorPtr transfer_;
  Dtype coarse_;

 private:
  mutable Scratch<Vector> work_;
};

class ConvertedRestriction final : public ConvertedTransfer {
 public:
  using ConvertedTransfer::ConvertedTransfer;
  Dtype dtype() const override { return transfer_->dtype(); }
  void apply(Vector const& x, Vector& y) const override {
    auto const w = lease(x, range());
    transfer_->apply(x, *w);
    copy(*w, y);
  }
};

class ConvertedProlongation final : public ConvertedTransfer {
 public:
  using ConvertedTransfer::ConvertedTransfer;
  Dtype dtype() const override { return coarse_; }
  void apply(Vector const& x, Vector& y) const override {
    auto const w = lease(x, domain());
    copy(x, *w);
    transfer_->apply(*w, y);
  }
  void apply_add(Vector const& x, Vector& y) const override {
    auto const w = lease(x, domain());
    copy(x, *w);
    transfer_->apply_add(*w, y);
  }
};

}  // namespace

Matrix LevelPrecision::of(Matrix const& A) const {
  auto const converted = A.converted(dtype);
  return bfloat16 ? converted.rounded_to_bfloat16() : converted;
}

Matrix LevelPrecision::for_products(Matrix A, bool adds) const {
  if (!bfloat16 && dtype != A.dtype()) return A.for_products(dtype, adds);
  auto out = of(A);
  out.keep_product_only(adds);
  return out;
}

LevelPrecisions::LevelPrecisions(std::string_view words, Dtype matrix) {
  levels_.clear();
  for (std::size_t begin = 0; begin <= words.size();) {
    auto const end = std::min(words.find(',', begin), words.size());
    auto const word = words.substr(begin, end - begin);
    begin = end + 1;
    ASTERISM_REQUIRE_ALIKE(word == "float64" || word == "float32" || word == "bfloat16", option,
                           "-pc_amg_dtype {}: \"{}\" is none of float64, float32, bfloat16. Give one for each level, with commas between; "
                           "the last one counts for all coarser levels.",
                           words, word);
    ASTERISM_REQUIRE_ALIKE(word != "float64" || real_of(matrix) == Dtype::float64, option,
                           "-pc_amg_dtype {}: the matrix is {}, so no level gains from float64. Use float32.", words, name_of(matrix));
    ASTERISM_REQUIRE_ALIKE(word != "bfloat16" || !is_complex(matrix), option,
                           "-pc_amg_dtype {}: the matrix is {}, and complex entries are not held in bfloat16. Use float32.", words,
                           name_of(matrix));
    levels_.push_back({with_precision_of(matrix, word == "float64" ? Dtype::float64 : Dtype::float32), word == "bfloat16"});
  }
}

OperatorPtr restriction_into(OperatorPtr R, Dtype coarse) {
  if (R->dtype() == coarse) return R;
  return std::make_shared<ConvertedRestriction>(std::move(R), coarse);
}
OperatorPtr prolongation_from(OperatorPtr P, Dtype coarse) {
  if (P->dtype() == coarse) return P;
  return std::make_shared<ConvertedProlongation>(std::move(P), coarse);
}

}  // namespace asterism::precond
