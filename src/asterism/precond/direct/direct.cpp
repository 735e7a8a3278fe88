// -pc_type lu and cholesky: which factors they make.
#include "asterism/precond/direct/dense_lu.hpp"
#include "asterism/precond/direct/distributed_direct.hpp"
#include "asterism/precond/direct/sparse_direct.hpp"
#include "asterism/precond/incomplete/arrangement.hpp"

namespace asterism::precond {
namespace {

constexpr char const* ours = "asterism";

/// -pc_factor_mat_solver_type, whose words others use for packages that are not called.
OptionSpec solver_option(std::vector<std::string> const& peers, std::map<std::string, std::string> more) {
  std::vector<std::string> choices{ours};
  choices.insert(choices.end(), peers.begin(), peers.end());
  auto out = choice_option("pc_factor_mat_solver_type", ours, std::move(choices),
                           "the library that factors; another one than asterism must be installed, and factors on the first rank");
  out.elsewhere = {{"petsc", "PETSc's own factors are serial; asterism's are in their place."},
                   {"superlu_dist", "asterism shares factors among the ranks (-pc_factor_layout)."},
                   {"strumpack", "asterism shares factors among the ranks (-pc_factor_layout)."}};
  out.elsewhere.merge(more);
  return out;
}

/// Of a matrix so full sparse factors have the zeros of dense ones, and lists of places besides.
bool dense_is_faster(std::int64_t rows, std::int64_t entries) { return double(entries) >= 0.2 * double(rows) * double(rows); }

std::vector<OptionSpec> shared_options(bool lu) {
  std::vector<std::string> orderings{"auto", "natural", "rcm", "amd", "nd"};
  if (lu) orderings.push_back("colamd");
  auto ordering = choice_option("pc_factor_mat_ordering_type", "auto", orderings,
                                format("order of the rows that are factored; rcm: a small profile, amd: little fill, nd: nested dissection "
                                       "by METIS (pip install pymetis){}; auto: nd of large matrices where METIS is found, else amd",
                                       lu ? ", colamd: little fill whatever rows are exchanged, by SuiteSparse (libcolamd2)" : ""));
  if (!lu) ordering.elsewhere = {{"colamd", "It is offered for -pc_type lu; of a symmetric pattern amd has less fill."}};
  return {ordering,
          real_option("pc_factor_memory_limit", 0, "most bytes of the factors and of work space on a rank; 0: what the machine has", 0),
          real_option("pc_factor_flop_limit", 0, "most floating-point operations of the numeric phase; 0: any", 0),
          text_option("pc_factor_layout", "auto",
                      "ranks that have the factors. gathered: the first alone; RxC, Px1, 1xP or square: all, with what is above their "
                      "subtrees in blocks on a grid of R x C ranks; auto: square from 10000 rows on, else gathered"),
          flag_option("pc_factor_subtrees", true,
                      "whole subtrees of the elimination tree are on one rank each; false: all supernodes are in blocks on the grid"),
          integer_option("pc_factor_block_size", 128, "columns of a block on the grid at most", 1, 4096),
          flag_option("pc_factor_checksums", false,
                      "messages of shared solves on the host have checksums: one that is lost or changed is an error that names it"),
          choice_option("pc_factor_gpu_solve", "auto", {"auto", "true", "false"},
                        "with -device cuda or hip, solves with a copy of sparse factors on the GPU; true: also where ranks share one; "
                        "false: on the host")};
}

OptionTable const& lu_table() {
  static OptionTable const t = [] {
    auto all = shared_options(true);
    all.push_back(solver_option({"umfpack", "superlu", "mumps"}, {{"cholmod", "CHOLMOD factors Hermitian matrices: -pc_type cholesky."}}));
    all.push_back(ArrangementRule::matching_option());
    all.push_back(choice_option("pc_lu_type", "auto", {"auto", "sparse", "dense"},
                                "kind of the factors; auto: dense if a fifth of the entries are not zero, else sparse"));
    all.push_back(real_option("pc_factor_pivot_threshold", 0.1,
                              "a pivot is at least this times the largest entry of its column; smaller: less fill, larger: less growth", 0,
                              1));
    return all;
  }();
  return t;
}

OptionTable const& cholesky_table() {
  static OptionTable const t = [] {
    auto all = shared_options(false);
    std::string const of_lu = "It is offered for -pc_type lu.";
    all.push_back(solver_option({"cholmod"}, {{"umfpack", of_lu}, {"superlu", of_lu}, {"mumps", of_lu}}));
    all.push_back(choice_option("pc_factor_matching", "auto", {"auto", "true", "false"},
                                "of L D L^H: scales come from a matching, so that small entries of the diagonal need not be delayed; "
                                "auto: if the diagonal has zeros or weak entries"));
    all.push_back(choice_option("pc_cholesky_type", "auto", {"auto", "positive_definite", "indefinite"},
                                "indefinite: L D L^H with blocks of one and two; auto: L L^H, and L D L^H where that breaks down"));
    all.push_back(
        real_option("pc_factor_pivot_threshold", 0.1, "of L D L^H: a pivot is at least this times the largest entry of its column", 0, 1));
    return all;
  }();
  return t;
}

SparseRule shared_rule(OptionReader& r, Nest const& nest, std::string const& name) {
  SparseRule rule;
  rule.name = name;
  rule.factors.ordering = r.text("pc_factor_mat_ordering_type");
  bool const peers_own = r.text("pc_factor_mat_solver_type") != ours && !r.given("pc_factor_pivot_threshold");
  if (!peers_own) rule.factors.pivot_threshold = r.real("pc_factor_pivot_threshold");
  rule.factors.memory_limit = std::size_t(r.real("pc_factor_memory_limit"));
  rule.factors.flop_limit = r.real("pc_factor_flop_limit");
  auto const matching = r.text("pc_factor_matching");
  rule.factors.matching = matching == "auto"   ? direct::Matching::automatic
                          : matching == "true" ? direct::Matching::yes
                                               : direct::Matching::no;
  rule.projects = nest.projects;
  auto const on_gpu = r.text("pc_factor_gpu_solve");
  rule.gpu_solves = on_gpu == "auto" ? GpuSolves::automatic : on_gpu == "true" ? GpuSolves::always : GpuSolves::never;
  return rule;
}

/// What another library makes of it; nothing: these are ours. Options that mean nothing to it are refused.
PreconditionerPtr made_by_another(OptionReader& r, Matrix const& A, SparseRule rule, std::vector<std::string> const& ours_alone) {
  auto const name = r.text("pc_factor_mat_solver_type");
  if (name == ours) return nullptr;
  for (auto const& option : ours_alone)
    ASTERISM_REQUIRE_ALIKE(!r.given(option), option, "option -{} means nothing to {}. Leave it out, or use -pc_factor_mat_solver_type {}.",
                           option, name, ours);
  auto const layout = r.text("pc_factor_layout");
  ASTERISM_REQUIRE_ALIKE(layout == "auto" || layout == "gathered", option,
                         "option -pc_factor_layout: {} factors on rank 0, so '{}' is not possible. Use gathered, or "
                         "-pc_factor_mat_solver_type {}.",
                         name, layout, ours);
  rule.foreign = direct::foreign::PeerOptions{name, rule.factors.kind, rule.factors.ordering, std::nullopt, rule.factors.memory_limit};
  if (r.given("pc_factor_pivot_threshold")) rule.foreign->pivot_threshold = rule.factors.pivot_threshold;
  rule.may_be_indefinite = false;
  return sparse_direct(A, rule);
}

constexpr std::int64_t rows_to_share = 10000;  // from so many on ranks share the factors

/// On one rank or on all.
PreconditionerPtr made(OptionReader& r, Matrix const& A, SparseRule const& rule) {
  auto const layout = r.text("pc_factor_layout");
  int const ranks = A.comm().size();
  direct::DistributionOptions distribution;
  bool const chosen = layout != "auto" && layout != "gathered";
  if (chosen) distribution.grid = direct::process_grid(layout, ranks);
  if (ranks == 1 || layout == "gathered") return sparse_direct(A, rule);
  if (!chosen) {
    if (A.global_rows() < rows_to_share) return sparse_direct(A, rule);
    distribution.grid = direct::process_grid("square", ranks);
  }
  distribution.subtrees = r.flag("pc_factor_subtrees");
  distribution.block_width = std::int32_t(r.integer("pc_factor_block_size"));
  distribution.checksums = r.flag("pc_factor_checksums");
  return distributed_direct(A, rule, distribution);
}

PreconditionerPtr make_lu(Nest const& nest, Matrix const& A) {
  auto r = nest.config.reader(lu_table());
  auto const type = r.text("pc_lu_type");
  bool const by_ours = r.text("pc_factor_mat_solver_type") == ours;
  ASTERISM_REQUIRE_ALIKE(by_ours || type != "dense", option, "option -pc_lu_type: {} has no dense factors. Use sparse.",
                         r.text("pc_factor_mat_solver_type"));
  if (type == "dense" || (type == "auto" && by_ours && dense_is_faster(A.global_rows(), A.nnz())))
    return dense_lu(A, std::size_t(r.real("pc_factor_memory_limit")), r.real("pc_factor_flop_limit"));
  auto rule = shared_rule(r, nest, "lu");
  rule.factors.kind = direct::FactorKind::lu;
  if (auto made = made_by_another(r, A, rule,
                                  {"pc_factor_matching", "pc_factor_flop_limit", "pc_factor_subtrees", "pc_factor_block_size",
                                   "pc_factor_checksums", "pc_factor_gpu_solve"}))
    return made;
  return made(r, A, rule);
}

PreconditionerPtr make_cholesky(Nest const& nest, Matrix const& A) {
  auto r = nest.config.reader(cholesky_table());
  auto rule = shared_rule(r, nest, "cholesky");
  auto const type = r.text("pc_cholesky_type");
  rule.factors.kind = type == "indefinite" ? direct::FactorKind::hermitian : direct::FactorKind::cholesky;
  rule.may_be_indefinite = type == "auto";
  ASTERISM_REQUIRE_ALIKE(type != "positive_definite" || r.text("pc_factor_matching") != "true", option,
                         "option -pc_factor_matching: L L^H takes its pivots from the diagonal, with any scales. Use "
                         "-pc_cholesky_type indefinite.");
  if (r.text("pc_factor_mat_solver_type") != ours)
    ASTERISM_REQUIRE_ALIKE(type != "indefinite", option,
                           "option -pc_cholesky_type: {} has no L D L^H for indefinite matrices. Use "
                           "-pc_factor_mat_solver_type {}.",
                           r.text("pc_factor_mat_solver_type"), ours);
  if (auto made = made_by_another(r, A, rule,
                                  {"pc_factor_pivot_threshold", "pc_factor_matching", "pc_factor_flop_limit", "pc_factor_subtrees",
                                   "pc_factor_block_size", "pc_factor_checksums", "pc_factor_gpu_solve"}))
    return made;
  return made(r, A, rule);
}

}  // namespace

PreconditionerEntry lu_entry() { return {make_lu, &lu_table(), "direct solution by L U; dense where the matrix is nearly full"}; }
PreconditionerEntry cholesky_entry() {
  return {make_cholesky, &cholesky_table(), "direct solution of a Hermitian matrix, by L L^H or L D L^H"};
}

}  // namespace asterism::precond
