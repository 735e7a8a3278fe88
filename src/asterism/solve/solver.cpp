#include "asterism/solve/solver.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/call_check.hpp"
#include "asterism/comm/exchange.hpp"
#include "asterism/comm/gpu_aware.hpp"
#include "asterism/comm/gpu_transport.hpp"
#include "asterism/comm/progress.hpp"
#include "asterism/comm/shared_array.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/race_check.hpp"
#include "asterism/la/cusparse.hpp"

namespace asterism::solve {
namespace {

using krylov::Monitor;
using krylov::Reason;
using la::Scalar;
using precond::PreconditionerPtr;

template <class Map>
std::vector<std::string> names_and_auto(Map const& map) {
  std::vector<std::string> out{"auto"};
  for (auto const& [name, entry] : map) out.push_back(name);
  return out;
}

OptionTable const& method_table() {
  static OptionTable const t = {
      choice_option("ksp_type", "auto", names_and_auto(krylov::methods()),
                    "the iterative method; auto: cg if Hermitian with positive diagonal, else gmres"),
      real_option("ksp_rtol", 1e-5, "stop when ||b - A x|| <= max(rtol ||b||, atol)", 0),
      real_option("ksp_atol", 0, "absolute tolerance on ||b - A x||", 0),
      real_option("ksp_divtol", 1e5, "diverged when the residual grows by this factor", 1),
      integer_option("ksp_max_it", 10000, "most iterations", 0),
      integer_option("ksp_max_resumes", 8, "times a method goes on when the verified residual misses the target", 0, 1000),
      choice_option("ksp_check_input", "true", {"true", "false"}, "look for NaN, empty rows, asymmetry and null vectors first"),
      choice_option("ksp_null_space", "auto", {"auto", "none", "constant"},
                    "project the constant vector out; auto: if A times it vanishes"),
      choice_option(
          "queue", "inline", {"inline", "thread", "strict", "shuffle"},
          "host queue that runs the work: at once, by a worker thread; strict (data apart, as on a device) and shuffle are for tests"),
      choice_option("device", "host", {"host", "auto", "cuda", "hip"},
                    "where the iterations run; cuda and hip are an error where they cannot, auto takes the host then and says so"),
      flag_option("ksp_asynchronous", false,
                  "the host does not wait for each iteration's norm: it looks every ksp_check_every iterations, late; on -queue thread if "
                  "nothing else is said"),
      integer_option("ksp_check_every", 20, "asynchronous: iterations between two looks of the host", 1),
      flag_option("ksp_graphs", true, "asynchronous, on a GPU: the kernels of an iteration are launched together, as a graph"),
      flag_option("reproducible", false,
                  "from now on sums and products have the same bits on any ranks and threads; costs time, nothing overlaps"),
      choice_option("use_gpu_aware_mpi", "auto", {"auto", "0", "1"},
                    "from now on halos between GPUs are sent from their memory: where MPI says that it can, never, or always; a checked "
                    "exchange comes first"),
      choice_option("gpu_transport", "auto", comm::gpu_transport_names(),
                    "what carries sums and halos between GPUs, from now on; nccl, nvshmem: each rank has one of its own; ipc: windows of "
                    "their memory, on one machine; auto: nccl or ipc, as messages prove, where no two share a GPU, else mpi"),
      choice_option("mat_gpu_product", "auto", {"auto", "own", "cusparse"},
                    "products of csr blocks on a GPU from now on: what takes less time at the first, ours, or cuSPARSE's"),
      choice_option("sf_transport", "auto", comm::transport_names(),
                    "what carries messages between ranks, from now on; auto: shared memory within a machine, MPI else; nccl, ipc, nvshmem: "
                    "of star forests on GPUs' queues"),
      choice_option("sf_progress", "none", {"none", "thread"},
                    "thread: from now on a helper thread lets MPI move messages while this process computes"),
      choice_option("shared_vectors", "auto", {"auto", "0", "1"},
                    "vectors made from now on lie in memory that neighbours on the machine read in place; auto: if it has large pages"),
      choice_option("sf_discovery", "auto", {"auto", "nbx", "reduce_scatter", "allreduce"},
                    "how ranks learn who sends to them when a pattern is set up, from now on; auto: by their number"),
      flag_option("sf_debug", false,
                  "star-forest operations check, from now on, that all ranks call the same and leave what is sent alone"),
      integer_option("queue_seed", 1, "seed of the shuffle queue", 0),
      integer_option("memory_cap", 0,
                     "from now on arrays of this process take at most so many bytes together, or it is an error; 0: no cap", 0),
      integer_option("gpu_memory_cap", 0, "the same for this process's arrays on its GPU", 0),
      flag_option("forbid_copies", false,
                  "from now on work that needs its data copied between host and device (or -queue strict) is an error"),
      flag_option("queue_debug", false, "from now on each submission to a queue is checked for conflicts that nothing orders"),
      flag_option("ksp_error_if_not_converged", true, "raise when the solve does not converge"),
      flag_option("ksp_monitor", false, "print the residual norm of every iteration"),
      flag_option("ksp_converged_reason", false, "print why the solve ended"),
      flag_option("ksp_view", false, "print the solver with every option in force"),
      flag_option("log_view", false, "print the table of events"),
  };
  return t;
}

/// What holds from now on for everything in the process.
void apply_process_options(OptionReader& r) {
  if (auto const progress = r.text("sf_progress"); r.given("sf_progress") && comm::mpi()) comm::set_progress_thread(progress == "thread");
  if (auto const shared = r.text("shared_vectors"); r.given("shared_vectors"))
    comm::set_shared_vectors(comm::shared_vectors_from_name(shared));
  if (auto const same_bits = r.flag("reproducible"); r.given("reproducible")) set_reproducible(same_bits);
  if (auto const aware = r.text("use_gpu_aware_mpi"); r.given("use_gpu_aware_mpi"))
    comm::set_gpu_aware(aware == "auto" ? comm::GpuAware::automatic : aware == "1" ? comm::GpuAware::yes : comm::GpuAware::no);
  if (auto const transport = r.text("gpu_transport"); r.given("gpu_transport")) comm::set_gpu_transport(transport);
  if (auto const product = r.text("mat_gpu_product"); r.given("mat_gpu_product"))
    la::set_gpu_product(product == "auto" ? la::GpuProduct::automatic : product == "own" ? la::GpuProduct::own : la::GpuProduct::cusparse);
  if (auto const transport = r.text("sf_transport"); r.given("sf_transport"))
    comm::set_default_transport(comm::transport_from_name(transport));
  if (auto const most = r.integer("memory_cap"); r.given("memory_cap")) device::host::set_memory_cap(std::size_t(most));
  if (auto const most = r.integer("gpu_memory_cap"); r.given("gpu_memory_cap")) device::gpu::set_memory_cap(std::size_t(most));
  if (auto const forbid = r.flag("forbid_copies"); r.given("forbid_copies")) device::set_forbid_copies(forbid);
  if (auto const races = r.flag("queue_debug"); r.given("queue_debug")) device::race_check::enable(races);
  if (auto const debug = r.flag("sf_debug"); r.given("sf_debug")) comm::set_call_checks(debug);
  if (auto const discovery = r.text("sf_discovery"); r.given("sf_discovery")) comm::set_discovery(comm::discovery_from_name(discovery));
}

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

/// What ran on the host because it has no form for a GPU, since `before`.
std::string told_without_form(std::vector<device::gpu::WithoutForm> const& before) {
  std::string out;
  for (auto const& now : device::gpu::without_form()) {
    auto count = now.count;
    for (auto const& b : before)
      if (b.event == now.event) count -= b.count;
    if (count > 0) out += format("{}{} ({} times)", out.empty() ? "" : ", ", now.event, count);
  }
  return out;
}

OptionTable const& preconditioner_table() {
  static OptionTable const t = {
      choice_option("pc_type", "auto", names_and_auto(precond::preconditioners()),
                    "the preconditioner; auto: amg if Hermitian with positive diagonal, else ilu"),
      choice_option("pc_dtype", "auto", {"auto", "float32", "float64"},
                    "precision of the preconditioner; auto: float32 for amg where the values allow it"),
  };
  return t;
}

/// M followed by the removal of the mean: solves on the complement of the constant vector.
class WithoutConstants final : public la::Operator {
 public:
  WithoutConstants(la::Operator const& inner, Vector const& ones) : inner_(inner), ones_(ones) {}
  la::Layout const& range() const override { return inner_.range(); }
  la::Layout const& domain() const override { return inner_.domain(); }
  Dtype dtype() const override { return inner_.dtype(); }
  void apply(Vector const& x, Vector& y) const override {
    inner_.apply(x, y);
    remove_mean(ones_, y);
  }
  std::string describe() const override { return inner_.describe(); }

  static Scalar remove_mean(Vector const& ones, Vector& y) {
    Scalar const mean = dot(ones, y) / double(std::max<std::int64_t>(y.global_size(), 1));
    axpy(-mean, ones, y);
    return mean;
  }

 private:
  la::Operator const& inner_;
  Vector const& ones_;
};

std::int64_t host_waits(device::Context const& ctx) {
  std::int64_t n = 0;
  for (auto const& w : ctx.waits()) n += w.count;
  return n;
}

std::vector<double> column_norms(Vector const& v) {
  std::vector<double> out;
  for (auto const& n : norm(v).values()) out.push_back(n.real());
  return out;
}

}  // namespace

std::vector<std::pair<std::string, OptionTable const*>> option_tables() {
  std::vector<std::pair<std::string, OptionTable const*>> out{{"solver", &method_table()}, {"preconditioner", &preconditioner_table()}};
  std::vector<OptionTable const*> seen;
  auto const add = [&](std::string const& name, OptionTable const* t) {
    if (t->empty() || std::find(seen.begin(), seen.end(), t) != seen.end()) return;
    seen.push_back(t);
    out.emplace_back(name, t);
  };
  for (auto const& [name, e] : krylov::methods()) add(name, e.options);
  for (auto const& [name, e] : precond::preconditioners()) add(name, e.options);
  return out;
}

void apply_process_options(Options const& options) {
  std::vector<EffectiveOption> record;
  auto r = Configuration{&options, "", &record}.reader(method_table());
  apply_process_options(r);
}

Solver::Solver(OperatorPtr A, Matrix P, OperatorPtr M, Options options, std::string prefix)
    : A_(std::move(A)), P_(std::move(P)), M_(std::move(M)), options_(std::move(options)), prefix_(std::move(prefix)) {
  auto const& comm = A_->range().comm();
  ASTERISM_REQUIRE(A_->range().fits(A_->domain()), shape,
                   "solve: the matrix is {} x {}; a square one is needed. am.least_squares takes any shape.", A_->range().global_size(),
                   A_->domain().global_size());
  auto const check = [&](Operator const& other, char const* name) {
    ASTERISM_REQUIRE(other.range().fits(A_->range()) && other.domain().fits(A_->range()), shape,
                     "solve: {} is {} x {}, and A {} x {}, or their rows are dealt otherwise.", name, other.range().global_size(),
                     other.domain().global_size(), A_->range().global_size(), A_->range().global_size());
    ASTERISM_REQUIRE(other.dtype() == A_->dtype(), dtype, "solve: {} has dtype {}, and A {}.", name, name_of(other.dtype()),
                     name_of(A_->dtype()));
  };
  if (P_) check(P_, "P");
  if (M_) check(*M_, "M");
  std::vector<OptionTable const*> tables;
  for (auto const& [name, t] : option_tables()) tables.push_back(t);
  check_known(options_, tables, {prefix_, prefix_ + "sub_", prefix_ + "mg_levels_", prefix_ + "mg_coarse_"});
  for (auto const& [name, value] : options_.shadowed())
    if (value.layer == OptionLayer::command_line && comm.rank() == 0)
      log::warning("-{} {} ({}) is overridden by {} ({}).", name, value.value, value.origin, options_.find(name)->value,
                   options_.find(name)->origin);
  set_up(false);
}

void Solver::update(Matrix A) {
  auto const* const old = A_->matrix();
  ASTERISM_REQUIRE(old && (!P_ || P_is_A()), unsupported, "update: the solver was made for {}{}. Make a new one.", A_->describe(),
                   old ? " with another P" : "");
  comm::agree(old->comm(), [&] {
    ASTERISM_REQUIRE(A.range().fits(old->range()) && A.domain().fits(old->domain()) && A.dtype() == old->dtype(), shape,
                     "update: {} instead of {}: size, dtype and the rows of each rank must be the same.", A.describe(), old->describe());
  });
  bool const same = A.has_pattern_of(*old);
  A_ = std::make_shared<Matrix>(A);
  if (P_) P_ = std::move(A);
  try {
    set_up(same);
  } catch (...) {
    preconditioner_ = nullptr;  // neither the old matrix nor the new one can be solved with
    throw;
  }
}

precond::PreconditionerPtr const& Solver::preconditioner() const {
  ASTERISM_REQUIRE(preconditioner_, value,
                   "the last update() of this solver failed. Update with a matrix that can be set up, or make a new solver.");
  return preconditioner_;
}

void Solver::set_up(bool same_pattern) {
  double const start = profile::now();
  device::host::KeepFreed const keep_freed;
  auto const& comm = A_->range().comm();
  auto const record_before = std::exchange(record_, {});
  notes_.clear();
  inspection_ = {};
  Configuration const config{&options_, prefix_, &record_};
  auto r = config.reader(method_table());
  auto type = r.text("ksp_type");
  rule_ = {r.real("ksp_rtol"), r.real("ksp_atol"), r.real("ksp_divtol"), r.integer("ksp_max_it")};
  bool const look = r.text("ksp_check_input") == "true";
  auto const null_space = r.text("ksp_null_space");
  max_resumes_ = r.integer("ksp_max_resumes");
  bool const asynchronous = r.flag("ksp_asynchronous");
  apply_process_options(r);
  auto queue = asynchronous && !r.given("queue") ? "thread" : r.text("queue");
  if (auto const device = r.text("device"); device != "host") {
    ASTERISM_REQUIRE(!r.given("queue"), option, "-device {} and -queue {} were both given: the iterations run on one of the two.", device,
                     queue);
    if (auto const why = why_no_gpu(comm, device); why.empty()) {
      comm::agree(comm, [&] {
        device::gpu::open(device);
        la::require_gpu_product();
      });
      queue = device::gpu::name();
      notes_.push_back(format("device: {}", device::gpu::describe()));
      if (comm.size() > 1) {
        auto const& transport = comm::gpu_transport(comm);
        if (transport.messenger) {
          notes_.push_back(format("sums and halos between GPUs: by {} ({})", transport.messenger->name(), transport.why));
        } else {
          auto const& mpi = comm::gpu_awareness(comm);
          notes_.push_back(format("sums between GPUs: through the host ({})", transport.why));
          notes_.push_back(format("halos between GPUs: {} ({})", mpi.used ? "from their memory" : "through the host", mpi.why));
        }
        if (auto const* const matrix = A_->matrix()) matrix->prepare_halo_for_gpu();
        if (P_ && !P_is_A()) P_.prepare_halo_for_gpu();
      }
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
    ctx_ = device::Context::from_name(queue, seed);
  if (comm.size() > 1 && ctx_.memory() == device::Memory::gpu) comm::send_by(comm::gpu_transport(comm).messenger, ctx_);
  // what the layer above prints; read here so that explain() shows it
  for (auto const* name : {"ksp_error_if_not_converged", "ksp_monitor", "ksp_converged_reason", "ksp_view", "log_view"}) r.flag(name);
  if (look) inspection_ = inspect(*A_);
  bool P_is_hermitian = inspection_.hermitian;
  if (look && P_ && !P_is_A()) {
    auto const of_P = inspect(P_);
    P_is_hermitian = of_P.hermitian;
    if (!A_->matrix()) inspection_.positive_diagonal = of_P.positive_diagonal;
  }
  if (!look) inspection_.hermitian = inspection_.positive_diagonal = true;
  if (null_space != "auto") inspection_.constant_null_space = null_space == "constant";

  if (type == "auto") {
    type = inspection_.hermitian && inspection_.positive_diagonal ? "cg" : "gmres";
    notes_.push_back(format("ksp auto: {} ({})", type,
                            !inspection_.hermitian          ? "not Hermitian"
                            : inspection_.positive_diagonal ? "Hermitian, positive diagonal"
                            : P_ ? "Hermitian, but the diagonal is not positive"
                                 : "Hermitian, but nothing is known of its sign; if it is positive, cg is better"));
  }
  method_name_ = type;
  auto const& entry = krylov::methods().at(type);
  method_ = entry.make(config);
  if (asynchronous && !method_->asynchronous()) {
    std::string able;
    for (auto const& [name, e] : krylov::methods())
      if (e.make(config)->asynchronous()) able += (able.empty() ? "" : ", ") + name;
    fail(ErrorKind::option, "{} needs values on the host in each iteration: it is not asynchronous. -ksp_type of those that are: {}.", type,
         able);
  }
  if (method_->needs_symmetric_matrix() && look)
    ASTERISM_REQUIRE(inspection_.hermitian, value,
                     "{} needs a Hermitian matrix, but |x^H A y - (y^H A x)*| / (||x|| ||A y||) is {} for a test pair. Use -ksp_type gmres "
                     "or bicgstab, or -ksp_check_input false if you know better.",
                     type, inspection_.asymmetry);
  reused_ = false;
  if (M_) {
    ASTERISM_REQUIRE(!config.reader(preconditioner_table()).given("pc_type"), option,
                     "solve: M is an approximate inverse already; -{}pc_type cannot be given besides.", prefix_);
    preconditioner_ = std::make_shared<precond::Users>(M_);
  } else if (P_) {
    std::vector<EffectiveOption> not_again;
    auto const type = chosen_preconditioner({&options_, prefix_, &not_again}, "auto");
    auto old = std::exchange(preconditioner_, nullptr);  // freed before another one is made
    reused_ = same_pattern && old && type == preconditioner_type_ && old->update(P_);
    if (reused_) {
      preconditioner_ = std::move(old);
      for (auto const& e : record_before)  // what it was made with
        if (std::none_of(record_.begin(), record_.end(), [&](auto const& now) { return now.name == e.name; })) record_.push_back(e);
    } else {
      old = nullptr;
      preconditioner_ = make_preconditioner(config, P_, "auto");
    }
    preconditioner_type_ = type;
  } else {
    auto const type = config.reader(preconditioner_table()).text("pc_type");
    ASTERISM_REQUIRE(type == "auto" || type == "none", option,
                     "solve: -{}pc_type {} needs a matrix, and A is {}. Give P, a matrix near A, or M, an approximate inverse.", prefix_,
                     type, A_->describe());
    preconditioner_ = precond::none(*A_);
  }
  if (method_->needs_symmetric_matrix() && !preconditioner_->symmetric())
    fail(ErrorKind::option, "{} needs a symmetric preconditioner, but '{}' is not one. Use {}, or -ksp_type gmres.", type,
         preconditioner_->describe(),
         preconditioner_type_ == "sor"   ? "-pc_sor_symmetric true"
         : preconditioner_type_ == "asm" ? "-pc_asm_type basic"
                                         : "-pc_type icc, amg or jacobi");
  if (!M_) preconditioner_->set_self_adjoint(look && P_is_hermitian && preconditioner_->symmetric());
  if (inspection_.constant_null_space && inspection_.hermitian)
    notes_.push_back("the constant vector is in the null space (a pure Neumann problem?): it is projected out");
  for (auto const& name : options_.names()) {
    bool const read = std::any_of(record_.begin(), record_.end(), [&](auto const& e) { return e.name == name; });
    if (!read && !(name == prefix_ + "queue_seed") && comm.rank() == 0)
      log::warning("option -{} ({}) has no effect: neither {} nor {} reads it.", name, options_.find(name)->origin, method_name_,
                   preconditioner_->describe());
  }
  setup_seconds_ = profile::now() - start;
}

std::string Solver::chosen_preconditioner(Configuration const& config, std::string const& fallback) const {
  auto r = config.reader(preconditioner_table());
  auto type = r.given("pc_type") || fallback == "auto" ? r.text("pc_type") : fallback;
  return type != "auto" ? type : inspection_.hermitian && inspection_.positive_diagonal ? "amg" : "ilu";
}

PreconditionerPtr Solver::make_preconditioner(Configuration const& config, Matrix const& A, std::string const& fallback) const {
  auto const type = chosen_preconditioner(config, fallback);
  auto precision = config.reader(preconditioner_table()).text("pc_dtype");
  // AMG casts its levels itself, after a set-up in full precision
  bool const casts_itself = type == "amg" || type == "gamg";
  auto const low = precision == "float32" && real_of(A.dtype()) == Dtype::float64 && !casts_itself;
  auto const B = low ? A.converted(with_precision_of(A.dtype(), Dtype::float32)) : A;
  precond::Nest const nest{config,
                           [this](Configuration const& c, Matrix const& M, std::string const& f) { return make_preconditioner(c, M, f); }};
  auto p = precond::preconditioners().at(type).make(nest, B);
  if (p->dtype() != A.dtype()) p = std::make_shared<precond::Cast>(A, p, B.dtype());
  return p;
}

SolveInfo Solver::solve(Vector const& b, Vector& x) {
  preconditioner();  // an error if there is none
  la::require_layout(b, A_->range(), A_->dtype(), "solve: b");
  la::require_layout(x, A_->range(), A_->dtype(), "solve: x");
  ASTERISM_REQUIRE(b.columns() == x.columns(), shape, "solve: b has {} columns, x has {}.", b.columns(), x.columns());
  auto const guess = look_at_entries(x), rhs = look_at_entries(b);
  ASTERISM_REQUIRE(rhs.not_finite == 0, value, "solve: b has {} entries that are NaN or infinite; the first is in row {}.", rhs.not_finite,
                   rhs.first_not_finite);
  ASTERISM_REQUIRE(guess.not_finite == 0, value,
                   "solve: the initial guess has {} entries that are NaN or infinite; the first is in row {}.", guess.not_finite,
                   guess.first_not_finite);

  if (!ctx_.runs_inline() && b.context().runs_inline()) {  // the same memory, worked on through the queue
    auto const on_queue = [&](Vector const& v) { return Vector::wrap(v.layout(), v.dtype(), v.columns(), v.data(), ctx_); };
    auto xq = on_queue(x);
    try {
      auto info = solve(on_queue(b), xq);
      x.data().settle(device::Access::read, "end of solve");
      return info;
    } catch (...) {
      ctx_.finish();  // x and b are the caller's, and may end with this error
      throw;
    }
  }

  bool const projects = inspection_.constant_null_space && inspection_.hermitian;
  if (b.columns() == 1 || (method_->blocks_columns() && !projects)) return solve_columns(b, x, guess.all_zero);
  // one column after the other: the method (or the projection) works on one
  SolveInfo all;
  all.converged = true;
  for (std::int64_t j = 0; j < b.columns(); ++j) {
    Vector bj(b.layout(), b.dtype(), 1, b.context()), xj = bj.like();
    with_dtype(b.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < b.local_size(); ++i) {
        bj.host<T>()[std::size_t(i)] = b.host<T>()[std::size_t(i * b.columns() + j)];
        xj.host<T>()[std::size_t(i)] = x.host<T>()[std::size_t(i * b.columns() + j)];
      }
    });
    auto one = solve_columns(bj, xj, guess.all_zero);
    with_dtype(b.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < b.local_size(); ++i) x.host<T>()[std::size_t(i * b.columns() + j)] = xj.host<T>()[std::size_t(i)];
    });
    if (all.converged) all.reason = one.reason, all.why = one.why;
    all.converged = all.converged && one.converged;
    for (std::size_t it = 0; it < one.residual_norms.size(); ++it) {
      if (all.residual_norms.size() <= it) {
        all.residual_norms.push_back(it ? all.residual_norms.back() : std::vector<double>{});
        all.residual_norms.back().resize(std::size_t(j));
      }
      all.residual_norms[it].push_back(one.residual_norms[it][0]);
    }
    for (auto it = one.residual_norms.size(); it < all.residual_norms.size(); ++it)
      all.residual_norms[it].push_back(one.residual_norms.back()[0]);
    all.iterations = std::max(all.iterations, one.iterations);
    all.true_residual.push_back(one.true_residual[0]);
    all.rhs_norm.push_back(one.rhs_norm[0]);
    all.resumes += one.resumes;
    all.setup_seconds = one.setup_seconds;
    all.solve_seconds += one.solve_seconds;
    all.memory_bytes = one.memory_bytes;
    all.host_waits += one.host_waits;
    if (j == 0) all.notes = one.notes;
  }
  all.notes.push_back(format("{} columns were solved one after the other", b.columns()));
  return all;
}

SolveInfo Solver::solve_columns(Vector const& b_given, Vector& x, bool zero_guess) {
  static int const event = profile::event("KSPSolve");
  profile::Scope const scope(event);
  double const start = profile::now();
  auto const waits_before = host_waits(x.context());
  auto const on_gpu = x.context().memory() == device::Memory::gpu;
  auto const without_form = on_gpu ? device::gpu::without_form() : std::vector<device::gpu::WithoutForm>();
  SolveInfo info;
  info.notes = notes_;
  info.setup_seconds = setup_seconds_;

  Vector b = b_given;
  std::unique_ptr<la::Operator> projected;
  Vector ones;
  if (inspection_.constant_null_space && inspection_.hermitian) {
    ones = b.like();
    fill(ones, 1.0);
    b = b_given.like();
    copy(b_given, b);
    double const size = norm(b).real();
    double const mean = std::abs(WithoutConstants::remove_mean(ones, b).value());
    if (mean * std::sqrt(double(b.global_size())) > 1e-8 * size)
      info.notes.push_back(
          format("b is not in the range of the matrix: its mean {} was removed; x solves the nearest consistent system", mean));
    WithoutConstants::remove_mean(ones, x);
    projected = std::make_unique<WithoutConstants>(*preconditioner_, ones);
  }
  la::Operator const& M = projected ? *projected : static_cast<la::Operator const&>(*preconditioner_);

  info.rhs_norm = column_norms(b);
  for (std::size_t j = 0; j < info.rhs_norm.size(); ++j)
    if (info.rhs_norm[j] == 0 && rule_.atol == 0) {  // only x = 0 satisfies the test
      with_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const v = x.host<T>();
        for (std::size_t i = j; i < v.size(); i += info.rhs_norm.size()) v[i] = T(0);
      });
    }
  Monitor monitor(rule_, info.rhs_norm, b.comm(), {x.context(), check_every_, watcher_needs_iterate_, zero_guess, graphs_}, watcher_);
  std::vector<double> previous;
  auto residual = b.like();
  for (;;) {
    method_->solve(*A_, M, b, x, monitor);
    A_->residual(b, x, residual);
    info.true_residual = column_norms(residual);
    if (auto const messenger = comm::sent_by(x.context(), b.comm())) messenger->check();
    if (!krylov::converged(monitor.reason())) break;
    bool missed = false, progress = previous.empty();
    for (std::size_t j = 0; j < info.true_residual.size(); ++j) {
      double const t = info.true_residual[j];
      if (!std::isfinite(t)) {
        monitor.set_all(Reason::diverged_nanorinf, "the verified residual is not finite");
        break;
      }
      missed = missed || t > monitor.targets()[j];
      if (!previous.empty()) progress = progress || t < 0.5 * previous[j];
    }
    if (!krylov::converged(monitor.reason()) || !missed) break;
    if (!progress || info.resumes >= max_resumes_ || monitor.iterations() >= rule_.max_it) {
      std::size_t worst = 0;
      for (std::size_t j = 1; j < info.true_residual.size(); ++j)
        if (info.true_residual[j] / std::max(monitor.targets()[j], 1e-300) >
            info.true_residual[worst] / std::max(monitor.targets()[worst], 1e-300))
          worst = j;
      bool const ended_early = monitor.reason() == Reason::converged_happy_breakdown;
      monitor.set_all(
          ended_early ? Reason::diverged_breakdown : Reason::diverged_stagnated,
          format("the method {}, but ||b - A x|| stays at {} ({} of ||b||) above the target {}: {}",
                 ended_early ? "cannot go on" : "believed it had converged", info.true_residual[worst],
                 info.true_residual[worst] / std::max(info.rhs_norm[worst], 1e-300), monitor.targets()[worst],
                 ended_early ? "the numbers it divides by are lost in rounding, or, in cg and its kin, something is not positive definite"
                             : format("the attainable accuracy in {}", name_of(A_->dtype()))));
      break;
    }
    previous = info.true_residual;
    ++info.resumes;
    monitor.resume(info.true_residual);
  }
  info.converged = krylov::converged(monitor.reason());
  info.reason = krylov::name_of(monitor.reason());
  info.why = info.converged ? "" : monitor.why();
  info.iterations = monitor.iterations();
  info.residual_norms = monitor.history();
  info.memory_bytes = (P_ ? P_.memory_bytes() : 0) + preconditioner_->memory_bytes();
  info.host_waits = host_waits(x.context()) - waits_before;
  if (on_gpu)
    if (auto const told = told_without_form(without_form); !told.empty())
      info.notes.push_back(format("without a form for the GPU, so on the host with data copied: {}", told));
  if (!info.converged) explain_failure(info, monitor.reason());
  info.solve_seconds = profile::now() - start;
  return info;
}

void Solver::explain_failure(SolveInfo& info, Reason reason) const {
  std::string hint;
  switch (reason) {
    case Reason::diverged_its:
      hint = preconditioner_->describe() == "none" ? "Try a preconditioner: -pc_type amg or ilu."
             : method_name_ == "gmres"             ? "Try a larger -ksp_gmres_restart, another -pc_type, or more -ksp_max_it."
                                                   : "Try another -pc_type, or more -ksp_max_it.";
      break;
    case Reason::diverged_indefinite_mat:
      hint = "Use -ksp_type minres (Hermitian) or gmres; if the matrix should be definite, look for a wrong sign.";
      break;
    case Reason::diverged_indefinite_pc:
      hint = preconditioner_type_ == "icc" || preconditioner_type_ == "ilu"
                 ? "Use -pc_type icc -pc_factor_shift_type positive_definite, or amg, or -ksp_type gmres."
                 : "Use another -pc_type (jacobi with a positive diagonal, amg), or -ksp_type gmres.";
      break;
    case Reason::diverged_stagnated:
      hint = "Accept this accuracy with a larger -ksp_rtol, rescale the equations, or use a wider dtype.";
      break;
    case Reason::diverged_breakdown:
      hint = method_name_ == "gmres" || method_name_ == "fgmres" ? "Look whether the matrix is singular."
                                                                 : "Use -ksp_type gmres; look whether the matrix is singular.";
      break;
    case Reason::diverged_dtol:
      hint =
          "Try a stronger preconditioner or -ksp_type gmres; residuals of bicgstab and cgs may grow for a while: a larger -ksp_divtol lets "
          "them.";
      break;
    case Reason::diverged_nanorinf: hint = "Check the scaling of the matrix; try -pc_dtype float64 or another -pc_type."; break;
    default: break;
  }
  if (!hint.empty()) info.why += (info.why.empty() ? "" : ". ") + hint;
}

std::string Solver::view() const {
  std::string out = format("matrix: {}\nmethod: {} ({})\npreconditioner: {}\n", A_->describe(), method_name_,
                           krylov::methods().at(method_name_).about, preconditioner()->report());
  for (auto const& n : notes_) out += "note: " + n + "\n";
  return out;
}

}  // namespace asterism::solve
