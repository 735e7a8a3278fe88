// The GPU of this process: found, chosen and loaded when first asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace asterism::device::host {
class TaskQueue;
}

namespace asterism::device {
struct Executor;
}

namespace asterism::device::gpu {

struct Api;

/// "cuda", "hip" or "auto". Loads the plug-in and takes the device with the number of this process on its node, modulo those there; or
/// (`callers`) the one that is current in this thread, which is an error where another was taken before. Otherwise an error that
/// says what is missing: the plug-in (how to build it), the driver, a device.
void open(std::string_view name, bool callers = false);
/// Whether that would succeed; `text` says which device it is, or why not. Loads the same.
bool available(std::string_view name, std::string& text);
/// The plug-in's table; nullptr where none is open.
Api const* api();
/// "cuda 0: NVIDIA H100 80GB HBM3, ..."; for logs.
std::string describe();
std::string_view name();
int device();                ///< its number
std::string identity();      ///< on its machine, whatever numbers processes have for it
std::string architecture();  ///< as compilers name it: "sm_90"
/// While it lives, the chosen device is the calling thread's.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(OnDevice const&) = delete;
  OnDevice& operator=(OnDevice const&) = delete;

 private:
  int before_ = -1;  // nothing to bring back
};
/// The error of a runtime's call, with the name of what was tried.
void check(int code, char const* what);

/// The form for the GPU of a kernel of the library: of the same name in the plug-in. nullptr: it has none.
void* form_of(void* kernel);
/// The same with its type; an error where there is none.
void* required_form_of(void* kernel);
template <class... P>
auto form_of(void (*kernel)(P...)) {
  return reinterpret_cast<void (*)(P...)>(required_form_of(reinterpret_cast<void*>(kernel)));
}
/// A form for a user's own kernel: a function with the same arguments that launches into Executor::stream.
void set_form(void* kernel, void* form);

/// A kernel of a file that the vendor's compiler made. It stays until the process ends: graphs may hold it.
void const* load_kernel(std::string const& path, std::string const& name);
/// Launches it with one argument, whose bytes are copied, or gives it to who collects launches.
void launch(Executor const& executor, void const* kernel, std::int64_t blocks, int threads, void* argument, std::size_t bytes);

/// Operations that were run on the host because they have no form for the GPU, by profiling event.
struct WithoutForm {
  std::string event;
  std::int64_t count;
};
void count_without_form();
std::vector<WithoutForm> without_form();

/// Memory of the device. Counted against the cap, if there is one.
void* allocate(std::size_t bytes, void* stream);
void release(void* data, std::size_t bytes) noexcept;
/// Memory that the host addresses too. Not counted against the cap: the GPU's own need not hold it.
void* allocate_unified(std::size_t bytes);
void release_unified(void* data) noexcept;
struct MemoryUse {
  std::size_t now = 0, most = 0, cap = 0;
};
MemoryUse memory_use();
void set_memory_cap(std::size_t bytes);  ///< 0: none
/// Who gives the device's memory instead of the runtime's own pool: a framework's caching allocator, say. `stream` is the one that
/// will use it first. For memory asked for from now on; each goes back to whom it came from. Without functions: the pool again.
struct Allocator {
  void* (*allocate)(std::size_t bytes, void* stream, void* context);
  void (*release)(void* data, std::size_t bytes, void* stream, void* context);
  void* context;
};
void set_allocator(Allocator allocator);

/// Arrays of the host up to 256 KiB are copied often and late (scalars, norms, what is sent): from now on they lie where the GPU copies
/// them without anybody waiting.
void pin_small_arrays();

/// A stream of the calling thread's: the default one would wait for all others.
void* threads_stream();
/// A copy that has ended when this returns.
void copy_now(void* to, void const* from, std::size_t bytes);
/// To the host's memory, by copy_out().
void copy_out_now(void* to, void const* from, std::size_t bytes);
void copy(void* to, void const* from, std::size_t bytes, void* stream);
/// From the host's memory, which may be changed when this returns.
void copy_in(void* to, void const* from, std::size_t bytes, void* stream);
/// To the host's memory, where all is when this returns.
void copy_out(void* to, void const* from, std::size_t bytes, void* stream);
void wait(void* stream);

/// What comes next in `stream` comes after what `other` was given so far. A null stream is the legacy default one.
void follow(void* stream, void* other);
/// An error unless that is memory of the chosen device. `what` begins its message.
void require_memory(void const* data, char const* what);

/// A queue: a worker thread that launches into a stream of its own, or into the user's.
host::TaskQueue* tasks();
/// Launches at once, from the submitting thread, into a stream that the caller owns and others may use as well.
host::TaskQueue* task_queue_on(void* stream);
/// Which streams these are.
void* stream_of(host::TaskQueue const& tasks);
/// The same, when all that was submitted is launched into it.
void* launched_stream(host::TaskQueue& tasks);

}  // namespace asterism::device::gpu
