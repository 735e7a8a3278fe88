#include "asterism/comm/communicator/shared_array.hpp"

#include <atomic>
#include <fstream>
#include <string>

#include "asterism/comm/node/node.hpp"

namespace asterism::comm {
namespace {

std::atomic<SharedVectors> choice{SharedVectors::automatic};

/// Whether shared memory may lie on large pages, as the arena asks for.
bool large_pages() {
  static bool const large = [] {
    std::string line;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/shmem_enabled"), line);
    for (auto const* chosen : {"[always]", "[within_size]", "[advise]", "[force]"})
      if (line.find(chosen) != std::string::npos) return true;
    return false;
  }();
  return large;
}

}  // namespace

SharedVectors shared_vectors_from_name(std::string_view name) {
  if (name == "auto") return SharedVectors::automatic;
  if (name == "0" || name == "false") return SharedVectors::never;
  if (name == "1" || name == "true") return SharedVectors::always;
  fail(ErrorKind::option, "shared vectors '{}' is not one of auto, 0, 1.", name);
}

void set_shared_vectors(SharedVectors c) { choice = c; }

device::Array vector_array(Communicator const& comm, std::size_t bytes) {
  auto const wanted = choice.load(std::memory_order_relaxed);
  if (bytes == 0 || wanted == SharedVectors::never || !comm.node() || !comm.node()->shares_memory() ||
      (wanted == SharedVectors::automatic && !large_pages()))
    return device::Array(bytes);
  auto* const arena = node::Arena::mine();
  auto const offset = arena->try_to_allocate(std::int64_t(bytes));
  if (offset == 0) return device::Array(bytes);  // a full arena only makes communication copy
  auto* const data = arena->at(offset);
  return device::Array::wrap(data, bytes,
                             std::shared_ptr<void>(data, [arena, offset, bytes](void*) { arena->release(offset, std::int64_t(bytes)); }));
}

}  // namespace asterism::comm
