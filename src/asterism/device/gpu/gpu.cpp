#include "asterism/device/gpu/gpu.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "asterism/base/error.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/executor.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::device::gpu {
namespace {

struct State {
  std::mutex mutex;
  void* plugin = nullptr;
  std::atomic<Api const*> api{nullptr};
  int device = 0;
  std::string text;
  // forms of kernels
  std::mutex forms_mutex;
  std::unordered_map<void*, void*> forms;
  std::map<std::string, std::int64_t> without;
};
State& state() {
  static auto* const s = new State;  // queues may end after static destruction began
  return *s;
}

std::string folder_of_this_library() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&open), &info) || !info.dli_fname) return ".";
  std::string const path = info.dli_fname;
  auto const slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// The plug-in of that name; the environment names another file (for tests, and for one that was built elsewhere).
std::string plugin_path(std::string_view name) {
  if (auto const* const given = std::getenv("ASTERISM_GPU_PLUGIN"); given && *given) return given;
  return folder_of_this_library() + "/libasterism_" + std::string(name) + ".so";
}

/// With the mutex held. What is missing, or nothing.
std::string load(State& s, std::string_view name) {
  auto const path = plugin_path(name);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return format("its plug-in does not load: {}. `make gpu` builds it where {} is found (docs/howto/gpu.md)", dlerror(),
                  name == "hip" ? "hipcc" : "nvcc");
  auto const entry = reinterpret_cast<Api const* (*)()>(dlsym(library, api_symbol));
  auto const* const api = entry ? entry() : nullptr;
  std::string why;
  int devices = 0;
  if (!api) why = format("'{}' is not a plug-in of this library", path);
  else if (api->version != api_version)
    why = format("plug-in '{}' has interface version {}, this library needs {}; build it again", path, api->version, api_version);
  else if (std::string_view(api->name) != name) why = format("'{}' is a plug-in for {}", path, api->name);
  else if (int const code = api->count(&devices)) why = format("{} (code {})", api->error_text(code), code);
  else if (devices == 0) why = "there is no device";
  if (!why.empty()) {
    dlclose(library);
    return why;
  }
  s.plugin = library;
  s.device = host::node_share().rank % devices;
  s.api = api;
  return {};
}

std::string described(State const& s) {
  char text[256] = "?";
  auto const* const api = s.api.load();
  check(api->describe(s.device, text, sizeof text), "asking for the device's properties");
  return format("{} {}: {}", api->name, s.device, text);
}

/// With the mutex held.
std::string try_open(State& s, std::string_view name) {
  if (auto const* const api = s.api.load()) {
    if (name == "auto" || name == api->name) return {};
    return format("this process uses {} already", api->name);
  }
  if (name != "auto") return load(s, name);
  auto const cuda = load(s, "cuda");
  if (cuda.empty()) return {};
  auto const hip = load(s, "hip");
  return hip.empty() ? hip : format("cuda: {}; hip: {}", cuda, hip);
}

}  // namespace

void open(std::string_view name, bool callers) {
  ASTERISM_REQUIRE(name == "cuda" || name == "hip" || name == "auto", option, "there is no GPU runtime '{}'. Runtimes: cuda, hip, auto.",
                   name);
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  bool const first = !s.api.load();
  auto const why = try_open(s, name);
  ASTERISM_REQUIRE(why.empty(), unsupported, "no GPU can be used ({}): {}. `asterism info` says what is here.", name, why);
  int current = s.device;
  if (callers) check(s.api.load()->current(&current), "asking for the current device");
  ASTERISM_REQUIRE(first || current == s.device, unsupported,
                   "the stream's device {} is current, but this process uses device {} already; one GPU for each process.", current,
                   s.device);
  if (!first) return;
  s.device = current;
  check(s.api.load()->keep_freed(s.device), "setting up its pool of memory");
  s.text = described(s);
  log::info("GPU of rank {} on this node: {}", host::node_share().rank, s.text);
  pin_small_arrays();
}

bool available(std::string_view name, std::string& text) {
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  auto const* const before = s.api.load();
  text = try_open(s, name);
  bool const found = text.empty();
  if (found) text = described(s);
  if (!before) s.api = nullptr;  // not taken yet; loaded again in no time
  return found;
}

Api const* api() { return state().api.load(std::memory_order_relaxed); }
std::string describe() { return state().text; }
int device() { return state().device; }
std::string_view name() { return api() ? api()->name : "none"; }

void check(int code, char const* what) {
  if (code == 0) [[likely]]
    return;
  constexpr int out_of_memory = 2;  // of cudaErrorMemoryAllocation and hipErrorOutOfMemory
  fail(code == out_of_memory ? ErrorKind::memory : ErrorKind::unsupported, "the GPU failed in {}: {} ({} error {}).", what,
       api()->error_text(code), name(), code);
}

OnDevice::OnDevice() {
  int current = 0;
  int const wanted = state().device;
  check(api()->current(&current), "asking for the current device");
  if (current == wanted) return;
  check(api()->use(wanted), "choosing a device");
  before_ = current;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) api()->use(before_);
}

void* form_of(void* kernel) {
  auto& s = state();
  std::lock_guard const lock(s.forms_mutex);
  auto const [at, is_new] = s.forms.try_emplace(kernel, nullptr);
  if (is_new && s.plugin) {
    Dl_info info{};
    // the name must be the kernel's own, not that of the nearest symbol before it
    if (dladdr(kernel, &info) && info.dli_sname && info.dli_saddr == kernel) at->second = dlsym(s.plugin, info.dli_sname);
    if (at->second == kernel) at->second = nullptr;  // found in the library itself
  }
  return at->second;
}

void* required_form_of(void* kernel) {
  auto* const form = form_of(kernel);
  ASTERISM_REQUIRE(form, unsupported, "a kernel has no form in the plug-in for {}; build that again.", name());
  return form;
}

void set_form(void* kernel, void* form) {
  auto& s = state();
  std::lock_guard const lock(s.forms_mutex);
  s.forms[kernel] = form;
}

std::string identity() {
  char text[64] = "";
  check(api()->identity(device(), text, sizeof text), "asking for the device's place");
  return text;
}

std::string architecture() {
  char text[256] = "";
  check(api()->architecture(device(), text, sizeof text), "asking for the device's architecture");
  return text;
}

void const* load_kernel(std::string const& path, std::string const& name) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<std::string, std::string>, void const*>;
  std::lock_guard const lock(mutex);
  auto& kernel = (*all)[{path, name}];
  if (!kernel) {
    OnDevice const here;
    check(api()->load_kernel(path.c_str(), name.c_str(), &kernel), "loading a kernel that was compiled");
  }
  return kernel;
}

void launch(Executor const& executor, void const* kernel, std::int64_t blocks, int threads, void* argument, std::size_t bytes) {
  Launch const all{kernel, unsigned(blocks), unsigned(threads), 0, &argument, &bytes, 1};
  if (executor.collector) executor.collector->add(*executor.collector, all);
  else check(api()->launch(all, executor.gpu_stream), "launching a kernel");
}

void count_without_form() {
  auto& s = state();
  auto const event = profile::current();
  auto const name = event >= 0 ? profile::name_of(event) : std::string("outside of events");
  std::lock_guard const lock(s.forms_mutex);
  if (s.without[name]++ == 0) log::info("{} has no form for the GPU: it runs on the host, its data are copied", name);
}

std::vector<WithoutForm> without_form() {
  auto& s = state();
  std::lock_guard const lock(s.forms_mutex);
  std::vector<WithoutForm> out;
  for (auto const& [event, count] : s.without) out.push_back({event, count});
  return out;
}

void copy(void* to, void const* from, std::size_t bytes, void* stream) { check(api()->copy(to, from, bytes, stream), "a copy"); }
void wait(void* stream) { check(api()->stream_wait(stream), "waiting for a stream"); }

void follow(void* stream, void* other) {
  OnDevice const here;
  Api::Event event = nullptr;
  check(api()->event_new(&event), "creating an event");
  int code = api()->event_record(event, other);
  if (code == 0) code = api()->stream_after(stream, event);
  api()->event_free(event);  // the runtime keeps it as long as it is needed
  check(code, "ordering two streams");
}

void require_memory(void const* data, char const* what) {
  int owner = -1;
  check(api()->device_of(data, &owner), "asking whose memory that is");
  ASTERISM_REQUIRE(owner >= 0, value, "{}: address {} is no memory of a GPU.", what, data);
  ASTERISM_REQUIRE(owner == device(), value, "{}: the array is on device {}, this process uses device {}. Copy it there first.", what,
                   owner, device());
}

void* threads_stream() {
  struct Own {
    Api::Stream stream = nullptr;
    ~Own() {
      if (stream) api()->stream_free(stream);
    }
  };
  static thread_local Own own;
  if (!own.stream) check(api()->stream_new(&own.stream), "creating a stream");
  return own.stream;
}

void copy_now(void* to, void const* from, std::size_t bytes) {
  OnDevice const here;
  auto* const stream = threads_stream();
  copy(to, from, bytes, stream);
  wait(stream);
}

void copy_out_now(void* to, void const* from, std::size_t bytes) {
  OnDevice const here;
  copy_out(to, from, bytes, threads_stream());
}

}  // namespace asterism::device::gpu
