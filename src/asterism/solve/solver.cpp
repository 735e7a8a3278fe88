// The set-up of a solver.
#include "asterism/solve/solver.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/comm/forest/gpu_aware.hpp"
#include "asterism/comm/gpu/transport.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/la/formats/csr/cusparse.hpp"
#include "asterism/solve/inner_solver.hpp"
#include "asterism/solve/options.hpp"

namespace asterism::solve {
namespace {

using precond::PreconditionerPtr;

/// Most iterations of a solver within a solver for which none are given.
constexpr std::int64_t inner_iterations = 100;

/// The same on all ranks: what is missing, or nothing.
std::string why_no_gpu(comm::Communicator const& comm, std::string const& device) {
  std::string why;
  bool const here = device::gpu::available(device, why);
  if (here) why.clear();  // else the device's name
  if (comm.size() == 1) return why;
  int const first = int(comm.min(here ? std::int64_t(comm.size()) : std::int64_t(comm.rank())));
  if (first == comm.size()) return {};
  return format("rank {}: {}", first, comm.bcast(why, first));
}

bool is_of_process(std::string_view option) {
  return std::any_of(process_table().begin(), process_table().end(), [&](auto const& spec) { return spec.name == option; });
}

}  // namespace

Solver::Solver(OperatorPtr A, Matrix P, OperatorPtr M, Options options, std::string prefix, Vector null_space)
    : given_A_(std::move(A)),
      A_(given_A_),
      given_P_(std::move(P)),
      M_(std::move(M)),
      given_null_space_(std::move(null_space)),
      options_(std::move(options)),
      prefix_(std::move(prefix)) {
  comm::collective(A_->range().comm(), "Solver", [&] {
    compare_ranks();
    check_operators();
    check_options();
    set_up(false);
  });
}

/// What would end in a hang, or in messages of different sizes, if it were not the same on all ranks.
void Solver::compare_ranks() const {
  auto const& comm = given_A_->range().comm();
  if (comm.size() == 1) return;
  std::vector<comm::Fact> facts{{"dtype of A", std::string(name_of(given_A_->dtype()))},
                                {"P", given_P_ ? "given" : "not given"},
                                {"M", M_ ? "given" : "not given"},
                                {"columns of null_space", given_null_space_ ? std::to_string(given_null_space_.columns()) : "none"}};
  for (auto const& name : options_.names()) {
    auto const plain = std::string_view(name).substr(name.rfind(prefix_, 0) == 0 ? prefix_.size() : 0);
    if (!may_differ_between_ranks(plain) && !is_of_process(name)) facts.push_back({"-" + name, options_.find(name)->value});
  }
  for (auto const& [name, value] : process_settings())
    if (!may_differ_between_ranks(name)) facts.push_back({"-" + name, value});
  comm::require_same(comm, "Solver", facts);
}

void Solver::check_operators() const {
  ASTERISM_REQUIRE(A_->range().fits(A_->domain()), shape,
                   "solve: the matrix is {} x {}; a square one is needed. am.least_squares takes any shape.{}", A_->range().global_size(),
                   A_->domain().global_size(),
                   A_->range().comm().size() == 1 && A_->range().global_size() < A_->domain().global_size()
                       ? " If these are the rows of one rank of several, make am.Matrix.from_scipy(S, comm) of them."
                       : "");
  auto const check = [&](Operator const& other, char const* name) {
    ASTERISM_REQUIRE(other.range().fits(A_->range()) && other.domain().fits(A_->range()), shape,
                     "solve: {} is {} x {}, and A {} x {}, or their rows are dealt otherwise, or to another communicator.", name,
                     other.range().global_size(), other.domain().global_size(), A_->range().global_size(), A_->range().global_size());
    ASTERISM_REQUIRE(other.dtype() == A_->dtype(), dtype, "solve: {} has dtype {}, and A {}.", name, name_of(other.dtype()),
                     name_of(A_->dtype()));
  };
  if (given_P_) check(given_P_, "P");
  if (M_) check(*M_, "M");
}

void Solver::check_options() const {
  std::vector<OptionTable const*> tables;
  for (auto const& [name, t] : option_tables()) tables.push_back(t);
  std::vector<std::string> nested = {"sub_", "mg_levels_", "ksp_"};
  for (auto const& name : options_.names())
    if (name.ends_with("pc_type") && options_.find(name)->value == "gmg") nested = {"sub_", "mg_levels_", "ksp_", "mg_coarse_"};
  check_known(options_, tables, prefix_, nested, names_elsewhere());
  for (auto const& spec : process_table()) {
    auto const* const given = options_.find(spec.name);
    ASTERISM_REQUIRE(!given || given->layer < OptionLayer::dict, option,
                     "-{} ({}) holds for the whole process, not for one solver. Set it by asterism.configure({}=...), in ASTERISM_OPTIONS, "
                     "or on the command line.",
                     spec.name, given->origin, spec.name);
  }
  if (given_A_->range().comm().rank() != 0) return;
  for (auto const& [name, value] : options_.shadowed())
    if (value.layer == OptionLayer::command_line)
      log::warning("-{} {} ({}) is overridden by {} ({}).", name, value.value, value.origin, options_.find(name)->value,
                   options_.find(name)->origin);
}

void Solver::update(Matrix A) {
  comm::collective(given_A_->range().comm(), "Solver.update", [&] { update_in_turn(std::move(A)); });
}

void Solver::update_in_turn(Matrix A) {
  auto const turn = take_turn("update");
  auto const* const old = given_A_->matrix();
  ASTERISM_REQUIRE(old && (!given_P_ || P_is_A()), unsupported, "update: the solver was made for {}{}. Make a new one.",
                   given_A_->describe(), old ? " with another P" : "");
  comm::agree(old->comm(), [&] {
    ASTERISM_REQUIRE(A.range().fits(old->range()) && A.domain().fits(old->domain()) && A.dtype() == old->dtype(), shape,
                     "update: {} instead of {}: size, dtype, communicator and the rows of each rank must be the same.", A.describe(),
                     old->describe());
  });
  bool const same = A.has_pattern_of(*old);
  given_A_ = std::make_shared<Matrix>(A);
  if (given_P_) given_P_ = std::move(A);
  try {
    set_up(same);
  } catch (...) {
    preconditioner_ = nullptr;  // neither the old matrix nor the new one can be solved with
    throw;
  }
}

device::host::InUse::Turn Solver::take_turn(char const* what) const { return {*in_use_, given_A_->range().comm().size() == 1, what}; }

precond::PreconditionerPtr const& Solver::preconditioner() const {
  ASTERISM_REQUIRE(preconditioner_, value,
                   "the last update() of this solver failed. Update with a matrix that can be set up, or make a new solver.");
  return preconditioner_;
}

void Solver::set_up(bool same_pattern) {
  double const start = profile::now();
  device::host::KeepFreed const keep_freed;
  auto const record_before = std::exchange(record_, {});
  notes_.clear();
  Configuration const config{&options_, prefix_, &record_};
  auto r = config.reader(method_table());
  read_options(r);
  choose_queue(r);
  look_at_system();
  choose_method(config);
  choose_preconditioner(config, same_pattern, record_before);
  warn_of_unread_options();
  warn_of_other_bits();
  setup_seconds_ = profile::now() - start;
}

void Solver::read_options(OptionReader& r) {
  wanted_method_ = r.text("ksp_type");
  rule_ = {r.real("ksp_rtol"), r.real("ksp_atol"), r.real("ksp_divtol"), r.integer("ksp_max_it")};
  looks_ = r.text("ksp_check_input") == "true";
  projects_ = r.text("ksp_null_space");
  keeps_best_ = r.flag("ksp_keep_best");
  max_resumes_ = r.integer("ksp_max_resumes");
  // what the layer above prints; read here so that explain() shows it
  for (auto const* name : {"ksp_error_if_not_converged", "ksp_monitor", "ksp_converged_reason", "ksp_view", "log_view"}) r.flag(name);
}

void Solver::choose_queue(OptionReader& r) {
  auto const& comm = given_A_->range().comm();
  bool const asynchronous = r.flag("ksp_asynchronous");
  auto queue = asynchronous && !r.given("queue") ? "thread" : r.text("queue");
  if (auto const device = r.text("device"); device != "host") {
    ASTERISM_REQUIRE(!r.given("queue"), option, "-device {} and -queue {} were both given: the iterations run on one of the two.", device,
                     queue);
    if (auto const why = why_no_gpu(comm, device); why.empty()) {
      use_gpu(device);
      queue = device::gpu::name();
    } else {
      ASTERISM_REQUIRE(device == "auto", unsupported, "-device {}: {}.", device, why);
      notes_.push_back(format("device auto: the host, since {}", why));
    }
  }
  if (asynchronous) check_every_ = r.integer("ksp_check_every"), graphs_ = r.flag("ksp_graphs");
  if (comm.size() > 1 && queue != "inline" && queue != "shuffle")
    comm::require_thread_multiple(queue == "thread" || queue == "strict" ? "-queue thread or strict on several ranks"
                                                                         : "a GPU on several ranks");
  std::uint64_t const seed = queue == "shuffle" ? std::uint64_t(r.integer("queue_seed")) : 1;
  if (!method_)  // an update keeps the queue
    queue_ = device::Queue::from_name(queue, seed);
  if (comm.size() > 1 && queue_.memory() == device::Memory::gpu) comm::send_by(comm::gpu_transport(comm).messenger, queue_);
}

void Solver::use_gpu(std::string const& device) {
  auto const& comm = given_A_->range().comm();
  comm::agree(comm, [&] {
    device::gpu::open(device);
    la::require_gpu_product();
  });
  notes_.push_back(format("device: {}", device::gpu::describe()));
  if (comm.size() == 1) return;
  auto const& transport = comm::gpu_transport(comm);
  if (transport.messenger) {
    notes_.push_back(format("sums and halos between GPUs: by {} ({})", transport.messenger->name(), transport.why));
  } else {
    auto const& mpi = comm::gpu_awareness(comm);
    notes_.push_back(format("sums between GPUs: through the host ({})", transport.why));
    notes_.push_back(format("halos between GPUs: {} ({})", mpi.used ? "from their memory" : "through the host", mpi.why));
  }
  if (auto const* const matrix = given_A_->matrix()) matrix->prepare_halo_for_gpu();
  if (given_P_ && !P_is_A()) given_P_.prepare_halo_for_gpu();
  for (auto const& op : {given_A_, M_})
    if (op && op->domain().has_local_form()) op->domain().ghost_forest().prepare_for_gpu();
}

/// A and P as they are worked with. largest_A_ becomes the size of A then.
void Solver::scale_system(MatrixScale const& by) {
  scale_ = by;
  A_ = scaled(given_A_, by);
  P_ = !given_P_ ? Matrix() : P_is_A() ? *A_->matrix() : by.is_one() ? given_P_ : given_P_.scaled(by.exponent, by.negated);
}

void Solver::look_at_system() {
  inspection_ = {}, small_rows_told_ = false;
  null_space_ = {};
  magnitudes_.reset();
  auto const dtype = given_A_->dtype();
  // of an operator without entries P says how large its numbers are, or its product with a vector
  auto const* const entries = given_A_->matrix() ? given_A_->matrix() : given_P_ ? &given_P_ : nullptr;
  if (entries) inspection_.size = entries->largest_entry();
  scale_system({scaling_exponent(inspection_.size, dtype), false});
  if (looks_) {
    double const size = inspection_.size;
    inspection_ = inspect(*A_, scale_.exponent != 0 ? given_A_->matrix() : nullptr, size);
    if (entries) inspection_.size = size;
    else scale_system({scaling_exponent(inspection_.size, dtype), false});
    of_P_ = P_ && !P_is_A() ? inspect(P_) : inspection_;
    if (P_ && !A_->matrix()) {
      inspection_.positive_diagonal = of_P_.positive_diagonal;
      inspection_.negative_diagonal = of_P_.negative_diagonal;
    }
  } else {
    inspection_.hermitian = inspection_.positive_diagonal = true;
    of_P_ = {};  // it is not Hermitian, for all that is known
  }
  if (inspection_.hermitian && inspection_.negative_diagonal) {
    scale_system({scale_.exponent, true});
    inspection_.positive_diagonal = true;
    std::swap(of_P_.positive_diagonal, of_P_.negative_diagonal);
    notes_.push_back("the matrix is Hermitian with a negative diagonal: -A x = -b is solved");
  }
  if (scale_.exponent != 0)
    notes_.push_back(format("the largest entry of the matrix is {}: it is scaled by 2^{}", inspection_.size, scale_.exponent));
  largest_A_ = std::ldexp(inspection_.size, scale_.exponent);

  if (given_null_space_) {
    null_space_ = given_null_space(*A_, given_null_space_, looks_ ? largest_A_ : 0);
  } else if (projects_ == "constant") {
    Vector ones(A_->range(), A_->dtype());
    fill(ones, 1.0);
    clear_padding(ones);
    null_space_ = given_null_space(*A_, ones, looks_ ? largest_A_ : 0);
  } else if (projects_ == "auto" && looks_ && inspection_.hermitian && A_->matrix()) {
    null_space_ = detected_null_space(*A_->matrix());
  } else if (projects_ == "auto" && looks_ && inspection_.hermitian && A_->eigenvalue_bound()) {
    null_space_ = detected_null_space(*A_, largest_A_);
  }
  if (!null_space_.empty() && inspection_.hermitian)
    notes_.push_back(null_space_.dimension() == 1 && !given_null_space_ && null_space_.where().empty()
                         ? "the constant vector is in the null space (a pure Neumann problem?): it is projected out"
                         : format("a null space of {} dimension(s){} is projected out", null_space_.dimension(), null_space_.where()));
  else if (!null_space_.empty())
    notes_.push_back(format("a null space of {} dimension(s){} is kept out of x; b is taken as it is, since A is not Hermitian",
                            null_space_.dimension(), null_space_.where()));
  if (auto const count = null_space_.components_not_taken_apart; count > 0)
    notes_.push_back(format("{} connected components of the matrix have null vectors of their own, more than the {} that are taken apart",
                            count, NullSpace::most_components));
}

void Solver::choose_method(Configuration const& config) {
  auto type = wanted_method_;
  if (type == "auto") {
    std::vector<EffectiveOption> not_again;
    bool const nested = !M_ && Configuration{&options_, prefix_, &not_again}.reader(preconditioner_table()).text("pc_type") == "ksp";
    type = nested ? "fgmres" : automatic_choice(inspection_, A_->range().global_size()).method;
    notes_.push_back(format("ksp auto: {} ({})", type,
                            nested                          ? "the preconditioner is a solver"
                            : !inspection_.hermitian        ? "not Hermitian"
                            : scale_.negated                ? "Hermitian, negative diagonal"
                            : inspection_.positive_diagonal ? "Hermitian, positive diagonal"
                            : P_ ? "Hermitian, but the diagonal is not of one sign"
                                 : "Hermitian, but nothing is known of its sign; if it is positive, cg is better"));
  }
  use_method(config, type);
  if (check_every_ > 0 && !method_->asynchronous()) {
    std::string able;
    for (auto const& [name, e] : krylov::methods())
      if (e.make(config)->asynchronous()) able += (able.empty() ? "" : ", ") + name;
    ASTERISM_REQUIRE_ALIKE(false, option,
                           "{} needs values on the host in each iteration: it is not asynchronous. -ksp_type of those that are: {}.", type,
                           able);
  }
  if (method_->needs_symmetric_matrix() && looks_)
    ASTERISM_REQUIRE_ALIKE(
        inspection_.hermitian, value,
        "{} needs a Hermitian matrix, but y^H A x and (x^H A y)* differ by {} of ||y|| ||A x|| for a test pair. Use -ksp_type gmres "
        "or bicgstab, or -ksp_check_input false if you know better.",
        type, inspection_.asymmetry);
}

void Solver::use_method(Configuration const& config, std::string const& type) {
  method_name_ = type;
  method_ = krylov::methods().at(type).make(config);
}

void Solver::choose_preconditioner(Configuration const& config, bool same_pattern, std::vector<EffectiveOption> const& record_before) {
  reused_ = false;
  if (M_) {
    ASTERISM_REQUIRE_ALIKE(!config.reader(preconditioner_table()).given("pc_type"), option,
                           "solve: M is an approximate inverse already; -{}pc_type cannot be given besides.", prefix_);
    preconditioner_ = std::make_shared<precond::Users>(scaled_inverse(M_, scale_));
  } else if (P_) {
    record_without_preconditioner_ = record_.size();
    bool const by_itself = config.reader(preconditioner_table()).text("pc_type") == "auto";
    auto attempts = by_itself ? automatic_choice(seen(), P_.global_rows()).attempts : std::vector<AutomaticAttempt>();
    if (by_itself && wanted_method_ != "auto" && method_->needs_symmetric_matrix()) {
      std::erase_if(attempts, [](auto const& a) { return a.type == "ilu" || a.type == "ilut" || a.briefly; });
      if (attempts.empty()) attempts.push_back({"jacobi", {{"pc_jacobi_type", "rowl1"}}});
    }
    // an attempt that did not work for the last values is not made again
    bool const goes_on = same_pattern && attempt_ < attempts.size() && attempt_ < attempts_.size() &&
                         attempts[attempt_].text() == attempts_[attempt_].text();
    attempts_ = std::move(attempts);
    if (!goes_on) attempt_ = 0, why_attempt_.clear();
    if (!same_pattern) looked_for_cheap_factors_ = false;
    no_factors_.clear();
    std::vector<EffectiveOption> not_again;
    auto type = by_itself ? attempts_[attempt_].type : chosen_preconditioner({&options_, prefix_, &not_again}, "auto");
    auto old = std::exchange(preconditioner_, nullptr);  // freed before another one is made
    bool const alike = same_pattern && old && type == preconditioner_type_ && of_P_.hermitian == made_for_hermitian_;
    made_for_hermitian_ = of_P_.hermitian;
    if (alike && updates(*old, by_itself)) {
      preconditioner_ = std::move(old);
      reused_ = given_A_->range().comm().max(std::int64_t(preconditioner_->updated_from_scratch())) == 0;
      for (auto const& e : record_before)  // what it was made with
        if (std::none_of(record_.begin(), record_.end(), [&](auto const& now) { return now.name == e.name; })) record_.push_back(e);
      if (attempt_ > 0) tell_attempt(attempts_[attempt_]);
    } else {
      old = nullptr;
      preconditioner_ = by_itself ? automatic_preconditioner(config) : make_preconditioner(config, P_, "auto");
      if (by_itself) type = attempts_[attempt_].type;
    }
    preconditioner_type_ = type;
  } else {
    preconditioner_ = automatic_without_entries(config);
  }
  prepare_preconditioner();
  fit_method(config);
  if (preconditioner_->varies() && !method_->flexible())
    notes_.push_back(
        format("{} takes the preconditioner for the same in each iteration, and a solver that stops at a tolerance is not. It "
               "may stagnate: -ksp_type fgmres and gcr do not",
               method_name_));
}

/// Where -reproducible cannot keep its word.
void Solver::warn_of_other_bits() const {
  if (!reproducible() || M_ || !P_ || given_A_->range().comm().rank() != 0) return;
  auto const found = precond::preconditioners().find(preconditioner_type_);
  if (found != precond::preconditioners().end() && found->second.by_ranks)
    log::warning(
        "-reproducible: {} is made of each rank's own rows, so answers depend on the number of ranks. Those of jacobi, chebyshev, "
        "amg and lu do not.",
        preconditioner_type_);
}

void Solver::warn_of_unread_options() const {
  if (given_A_->range().comm().rank() != 0) return;
  for (auto const& name : options_.names()) {
    bool const read = std::any_of(record_.begin(), record_.end(), [&](auto const& e) { return e.name == name; });
    bool const of_attempt = !attempts_.empty() && name.starts_with(prefix_ + "pc_");  // one that was dropped, or may come
    bool const elsewhere = options_.is_read_elsewhere(name) || options_.of_other_solver(name, prefix_);
    if (!read && !of_attempt && !elsewhere && name != prefix_ + "queue_seed" && !is_of_process(name))
      log::warning("option -{} ({}) has no effect: neither {} nor {} reads it.", name, options_.find(name)->origin, method_name_,
                   preconditioner_->describe());
  }
}

std::string Solver::chosen_preconditioner(Configuration const& config, std::string const& fallback) const {
  auto r = config.reader(preconditioner_table());
  auto type = r.given("pc_type") || fallback == "auto" ? r.text("pc_type") : fallback;
  if (type != "auto") return type;
  // there is no other attempt, where factors would be too large
  auto const attempts = automatic_choice(seen(), A_->range().global_size()).attempts;
  return std::ranges::find(attempts, 0.0, &AutomaticAttempt::flop_limit)->type;
}

PreconditionerPtr Solver::make_preconditioner(Configuration const& config, Matrix const& A, std::string const& fallback) const {
  auto type = chosen_preconditioner(config, fallback);
  if (fallback != "auto" && config.reader(preconditioner_table()).text("pc_type") == "auto") type = fallback;
  auto precision = config.reader(preconditioner_table()).text("pc_dtype");
  // AMG casts its levels itself, after a set-up in full precision
  bool const casts_itself = type == "amg" || type == "gamg";
  auto const other = precision == "float32" && real_of(A.dtype()) == Dtype::float64 && !casts_itself ? Dtype::float32
                     : precision == "float64" && real_of(A.dtype()) == Dtype::float32                ? Dtype::float64
                                                                                                     : real_of(A.dtype());
  auto const B = other == real_of(A.dtype()) ? A : A.converted(with_precision_of(A.dtype(), other));
  auto p = precond::preconditioners().at(type).make(nest(config), B);
  if (p->dtype() != A.dtype()) p = std::make_shared<precond::Cast>(A, p, B.dtype());
  return p;
}

precond::Nest Solver::nest(Configuration const& config) const {
  return {config,
          [this](Configuration const& c, Matrix const& A, std::string const& f) { return make_preconditioner(c, A, f); },
          [this](Configuration const& c, OperatorPtr const& A, std::string const& f) { return make_inner_solver(c, A, f); },
          of_P_.hermitian || (!looks_ && method_->needs_symmetric_matrix()),
          config.prefix != prefix_ || method_->needs_symmetric_matrix(),
          !null_space_.empty()};
}

/// For an operator without entries.
PreconditionerPtr Solver::make_matrix_free(Configuration const& config, OperatorPtr const& A, std::string const& fallback) const {
  auto type = config.reader(preconditioner_table()).text("pc_type");
  if (type == "auto") type = fallback;
  auto const& entry = precond::preconditioners().at(type);
  if (!entry.make_matrix_free) {
    std::string able;
    for (auto const& [name, e] : precond::preconditioners())
      if (e.make_matrix_free) able += (able.empty() ? "" : ", ") + name;
    ASTERISM_REQUIRE_ALIKE(
        false, option,
        "solve: -{}pc_type {} needs a matrix, and A is {}. Give P, a matrix near A, or M, an approximate inverse; solve with "
        "the matrix itself, which is L.to_matrix() of a stencil; or use one of those that need no entries: {}.",
        config.prefix, type, A->describe(), able);
  }
  auto const precision = config.reader(preconditioner_table()).text("pc_dtype");
  auto const dtype = precision == "auto" ? A->dtype() : with_precision_of(A->dtype(), dtype_from_name(precision));
  if (dtype == A->dtype()) return entry.make_matrix_free(nest(config), A);
  auto const B = A->converted_to(dtype);
  ASTERISM_REQUIRE_ALIKE(B, option, "solve: -{}pc_dtype {}: {} is known in its own dtype alone. Leave out the option.", config.prefix,
                         precision, A->describe());
  return std::make_shared<precond::Cast>(*A, entry.make_matrix_free(nest(config), B), dtype);
}

/// One that is nested: its options are those of a solver, under its own prefix.
PreconditionerPtr Solver::make_inner_solver(Configuration const& config, OperatorPtr const& A, std::string const& fallback) const {
  auto r = config.reader(method_table());
  auto const* const matrix = A->matrix();
  auto M = matrix ? make_preconditioner(config, *matrix, fallback) : make_matrix_free(config, A, fallback);
  auto type = r.text("ksp_type");
  if (type == "auto")
    type = M->varies() ? "fgmres" : M->symmetric() ? automatic_choice(inspection_, A->range().global_size()).method : "gmres";
  if (type == "preonly" && check_every_ > 0) return M;
  auto const method = krylov::methods().at(type).make(config);
  auto const most = r.given("ksp_max_it") ? r.integer("ksp_max_it") : inner_iterations;  // not the square of the usual limit
  krylov::StopRule rule{r.real("ksp_rtol"), r.real("ksp_atol"), 0, most};
  // whoever says how many iterations, and nothing of a tolerance, means that many
  if (r.given("ksp_max_it") && !r.given("ksp_rtol")) rule.rtol = 0;
  if (type == "preonly") rule = {.rtol = 0, .atol = 0, .divtol = 0, .max_it = 1};  // whatever the tolerance
  ASTERISM_REQUIRE_ALIKE(
      check_every_ == 0 || method->asynchronous(), option,
      "-{}ksp_type {} needs values on the host in each iteration, and -ksp_asynchronous is given. Use cg, bicgstab, gcr or richardson.",
      config.prefix, type);
  ASTERISM_REQUIRE_ALIKE(check_every_ == 0 || r.given("ksp_max_it"), option,
                         "-ksp_asynchronous: all iterations of a solver within a solver are submitted, so their number must be given: "
                         "-{}ksp_max_it 10, say.",
                         config.prefix);
  if (method->needs_symmetric_matrix() && looks_)
    ASTERISM_REQUIRE_ALIKE(inspection_.hermitian && M->symmetric(), option,
                           "-{}ksp_type {} needs a Hermitian matrix and a symmetric preconditioner; {}. Use -{}ksp_type gmres.",
                           config.prefix, type, inspection_.hermitian ? format("'{}' is not symmetric", M->describe()) : "A is not",
                           config.prefix);
  return std::make_shared<InnerSolver>(A, std::move(M), method, rule);
}

std::string Solver::view() const {
  std::string out = format("matrix: {}\nmethod: {} ({})\npreconditioner: {}\n", A_->describe(), method_name_,
                           krylov::methods().at(method_name_).about, preconditioner()->report());
  for (auto const& n : notes_) out += "note: " + n + "\n";
  return out;
}

}  // namespace asterism::solve
