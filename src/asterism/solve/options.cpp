#include "asterism/solve/options.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/progress.hpp"
#include "asterism/comm/communicator/roll_call.hpp"
#include "asterism/comm/communicator/shared_array.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/gpu_aware.hpp"
#include "asterism/comm/gpu/transport.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/race_check.hpp"
#include "asterism/la/formats/csr/cusparse.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {
namespace {

template <class Map>
std::vector<std::string> names_and_auto(Map const& map) {
  std::vector<std::string> out{"auto"};
  for (auto const& [name, entry] : map) out.push_back(name);
  return out;
}

OptionSpec method_option() {
  auto spec = choice_option("ksp_type", "auto", names_and_auto(krylov::methods()),
                            "the iterative method; auto: cg if Hermitian with a diagonal of one sign, else gmres");
  for (auto const* const name : {"lsqr", "lsmr", "cgne", "cgls"})
    spec.elsewhere[name] = "Least squares have a function of their own: am.least_squares, by lsmr or lsqr.";
  return spec;
}

}  // namespace

OptionTable const& method_table() {
  static OptionTable const t = {
      method_option(),
      real_option("ksp_rtol", 1e-5, "stop when ||b - A x|| <= max(rtol ||b||, atol)", 0),
      real_option("ksp_atol", 0, "absolute tolerance on ||b - A x||", 0),
      real_option("ksp_divtol", 1e5, "diverged when the residual grows by this factor", 1),
      integer_option("ksp_max_it", 10000, "most iterations", 0),
      flag_option("ksp_keep_best", true, "x of a solve that fails: the iterate with the smallest residual; false: the last one"),
      integer_option("ksp_max_resumes", 30, "times a method starts again when the verified residual misses the target", 0, 1000),
      choice_option("ksp_check_input", "true", {"true", "false"}, "look for NaN, empty rows, asymmetry and null vectors first"),
      choice_option("ksp_null_space", "auto", {"auto", "none", "constant"},
                    "what is projected out; auto: constants, those of each component, and near-null vectors, where A times them vanishes"),
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
      integer_option("queue_seed", 1, "seed of the shuffle queue", 0),
      flag_option("ksp_error_if_not_converged", true, "raise when the solve does not converge"),
      flag_option("ksp_monitor", false, "print the residual norm of every iteration"),
      flag_option("ksp_converged_reason", false, "print why the solve ended"),
      flag_option("ksp_view", false, "print the solver with every option in force"),
      flag_option("log_view", false, "print the table of events of rank 0 after each solve"),
  };
  return t;
}

OptionTable const& process_table() {
  static OptionTable const t = {
      flag_option("reproducible", false, "sums and products have the same bits on any ranks and threads; costs time, nothing overlaps"),
      choice_option("use_gpu_aware_mpi", "auto", {"auto", "0", "1"},
                    "halos between GPUs are sent from their memory: where MPI says that it can, never, or always; a checked "
                    "exchange comes first"),
      choice_option("gpu_transport", "auto", comm::gpu_transport_names(),
                    "what carries sums and halos between GPUs; nccl, nvshmem: each rank has one of its own; ipc: windows of "
                    "their memory, on one machine; auto: nccl or ipc, as messages prove, where no two share a GPU, else mpi"),
      choice_option("mat_gpu_product", "auto", {"auto", "own", "cusparse"},
                    "products of csr blocks on a GPU: what takes less time at the first, ours, or cuSPARSE's"),
      choice_option("sf_transport", "auto", comm::transport_names(),
                    "what carries messages between ranks; auto: shared memory within a machine, MPI else; nccl, ipc, nvshmem: "
                    "of star forests on GPUs' queues"),
      choice_option("sf_progress", "none", {"none", "thread"},
                    "thread: a helper thread lets MPI move messages while this process computes"),
      choice_option("shared_vectors", "auto", {"auto", "0", "1"},
                    "new vectors lie in memory that neighbours on the machine read in place; auto: if it has large pages"),
      choice_option("sf_discovery", "auto", {"auto", "nbx", "reduce_scatter", "allreduce"},
                    "how ranks learn who sends to them when a pattern is set up; auto: by their number"),
      flag_option("sf_debug", false, "star-forest operations check that all ranks call the same and leave what is sent alone"),
      real_option("hang_timeout", 0,
                  "seconds: a wait for other ranks that lasts longer prints which rank is in which call and ends all; 0: none", 0),
      integer_option("memory_cap", 0, "arrays of this process take at most so many bytes together, or it is an error; 0: no cap", 0),
      integer_option("gpu_memory_cap", 0, "the same for this process's arrays on its GPU", 0),
      flag_option("forbid_copies", false, "work that needs its data copied between host and device (or -queue strict) is an error"),
      flag_option("queue_debug", false, "each submission to a queue is checked for conflicts that nothing orders"),
  };
  return t;
}

std::map<std::string, std::string> const& names_elsewhere() {
  static std::map<std::string, std::string> const names = {
      {"ksp_pc_side", "Leave it out: methods precondition from the right where they can."},
      {"ksp_norm_type", "Leave it out: methods test the norm of b - A x."},
      {"ksp_initial_guess_nonzero", "Give the guess to the solve: x0=, on the command line --x0."},
      {"ksp_chebyshev_eigenvalues", "Here they are -ksp_chebyshev_min and -ksp_chebyshev_max."},
      {"ksp_chebyshev_esteig", "Leave it out: the spectrum is estimated."},
      {"ksp_constant_null_space", "Here it is -ksp_null_space constant; auto finds it too."},
      {"ksp_monitor_short", "Here it is -ksp_monitor."},
      {"ksp_monitor_true_residual", "-ksp_monitor prints the norm of b - A x."},
      {"ksp_reuse_preconditioner", "A solver keeps its preconditioner until update()."},
      {"options_file", "On the command line it is --options-file, in the environment ASTERISM_OPTIONS_FILE."},
      {"options_left", "Leave it out: a warning names options that nothing reads."},
      {"mat_type", "Leave it out: the storage is chosen. A.with_storage(\"symmetric\") takes half of a Hermitian matrix."},
      {"mg_coarse_ksp_type", "The coarsest level of -pc_type amg is solved directly; of gmg -pc_gmg_coarse_type says how."},
      {"mg_coarse_pc_type", "The coarsest level of -pc_type amg is solved directly; of gmg -pc_gmg_coarse_type says how."},
      {"pc_factor_fill", "Leave it out: memory grows as needed. -pc_factor_memory_limit bounds it."},
      {"pc_gamg_agg_nsmooths", "-pc_amg_prolongator_damping 0 is aggregation without smoothing; one smoothing is the default."},
      {"pc_gamg_coarse_eq_limit", "Here it is -pc_amg_coarse_size."},
      {"pc_hypre_type", "Its BoomerAMG is a multigrid as -pc_type amg -pc_amg_type classical."},
      {"pc_mg_levels", "Here it is -pc_amg_max_levels."}};
  return names;
}

bool may_differ_between_ranks(std::string_view option) {
  static std::set<std::string_view> const own = {"memory_cap",
                                                 "gpu_memory_cap",
                                                 "forbid_copies",
                                                 "queue_debug",
                                                 "queue",
                                                 "queue_seed",
                                                 "ksp_monitor",
                                                 "ksp_view",
                                                 "log_view",
                                                 "hang_timeout",
                                                 "shared_vectors",
                                                 "ksp_converged_reason",
                                                 "ksp_error_if_not_converged"};
  return own.contains(option);
}

namespace {
OptionSpec preconditioner_option() {
  auto spec = choice_option("pc_type", "auto", names_and_auto(precond::preconditioners()),
                            "the preconditioner; auto: amg if Hermitian with a diagonal of one sign, else ilu; factors first where the "
                            "matrix is small and its diagonal weak, and where these fail; gmg for large stencils");
  spec.elsewhere = {{"hypre", "Its BoomerAMG is a multigrid as -pc_type amg -pc_amg_type classical."},
                    {"ml", "It is a multigrid as -pc_type amg."},
                    {"mg", "-pc_type gmg is of operators that know a coarser one, -pc_type amg of matrices."},
                    {"fieldsplit", "It is not offered: write an approximate inverse as an am.Operator, and give it as M."},
                    {"shell", "Give an am.Operator as M."},
                    {"eisenstat", "-pc_type sor -pc_sor_symmetric is SSOR too."},
                    {"gasm", "-pc_type asm has a subdomain for each rank."}};
  return spec;
}
}  // namespace

OptionTable const& preconditioner_table() {
  static OptionTable const t = {
      preconditioner_option(),
      choice_option("pc_dtype", "auto", {"auto", "float32", "float64"},
                    "precision of the preconditioner; auto: float32 for amg where the values allow it"),
  };
  return t;
}

namespace {

void apply(OptionReader& r) {
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
  if (auto const seconds = r.real("hang_timeout"); r.given("hang_timeout")) comm::roll_call::set_hang_timeout(seconds);
  if (auto const most = r.integer("memory_cap"); r.given("memory_cap")) device::host::set_memory_cap(std::size_t(most));
  if (auto const most = r.integer("gpu_memory_cap"); r.given("gpu_memory_cap")) device::gpu::set_memory_cap(std::size_t(most));
  if (auto const forbid = r.flag("forbid_copies"); r.given("forbid_copies")) device::set_forbid_copies(forbid);
  if (auto const races = r.flag("queue_debug"); r.given("queue_debug")) device::race_check::enable(races);
  if (auto const debug = r.flag("sf_debug"); r.given("sf_debug")) comm::set_call_checks(debug);
  if (auto const discovery = r.text("sf_discovery"); r.given("sf_discovery")) comm::set_discovery(comm::discovery_from_name(discovery));
}

std::mutex settings_mutex;
std::map<std::string, std::string> settings;

}  // namespace

std::vector<std::pair<std::string, OptionTable const*>> option_tables() {
  std::vector<std::pair<std::string, OptionTable const*>> out{
      {"process", &process_table()}, {"solver", &method_table()}, {"preconditioner", &preconditioner_table()}};
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
  auto r = Configuration{&options, "", &record}.reader(process_table());
  for (auto const& spec : process_table()) {  // a wrong value leaves all as it was
    using Kind = OptionSpec::Kind;
    if (spec.kind == Kind::flag) r.flag(spec.name);
    else if (spec.kind == Kind::integer) r.integer(spec.name);
    else if (spec.kind == Kind::real) r.real(spec.name);
    else r.text(spec.name);
  }
  apply(r);
  std::lock_guard const lock(settings_mutex);
  for (auto const& e : record)
    if (r.given(e.name)) settings[e.name] = e.value;
}

std::map<std::string, std::string> process_settings() {
  std::lock_guard const lock(settings_mutex);
  return settings;
}

}  // namespace asterism::solve
