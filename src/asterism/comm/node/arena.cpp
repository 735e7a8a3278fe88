#include "asterism/comm/node/arena.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "asterism/base/error.hpp"

namespace asterism::comm::node {
namespace {

constexpr std::size_t size = std::size_t(64) << 30;  // of address space: pages exist once they are touched
constexpr std::int64_t returned = 4 << 20;           // freed blocks from this size on give their pages back
constexpr std::uint64_t magic = 0x61737465724d656dull;

/// Differs between machines and between their starts.
std::uint64_t boot_number() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return std::hash<std::string>{}(id);
}

std::byte* map(int file) {
  void* const p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(p);
}

std::byte* base_here = nullptr;  // this process's arena
int file_here = -1;
std::atomic<bool> copied = false;  // in a child of fork

std::atomic<std::uint64_t> used_here = 0;

/// A child of fork would write into its parent's arrays: each page that it writes becomes its own. Where the system has no room for that,
/// it may not write.
void keep_writes_of_child() {
  copied = true;
  auto const used = std::size_t(used_here);
  if (used > 0 && mmap(base_here, used, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_here, 0) == MAP_FAILED)
    mprotect(base_here, used, PROT_READ);
}

/// Sizes are powers of two from 64 on.
std::size_t size_class(std::int64_t bytes) { return std::size_t(std::bit_width(std::uint64_t(bytes < 64 ? 64 : bytes) - 1)); }

}  // namespace

struct Arena::Free {
  std::mutex mutex;
  std::uint64_t next = (sizeof(Head) + 4095) / 4096 * 4096;
  std::array<std::vector<std::uint64_t>, 64> blocks;
};

Arena* Arena::mine() {
  // never destroyed: mailboxes may go after it when the process ends, and the system takes the memory back
  static auto* const arena = []() -> Arena* {
    std::unique_ptr<Arena> a(new Arena);
    a->file_ = memfd_create("asterism", MFD_CLOEXEC);
    if (a->file_ < 0 || ftruncate(a->file_, off_t(size)) != 0) return nullptr;
    a->base_ = map(a->file_);
    if (!a->base_) return nullptr;
    std::random_device random;
    a->name_ = {boot_number(), std::uint64_t(getpid()), std::uint64_t(a->file_), std::uint64_t(random()) << 32 | random()};
    auto* const head = new (a->base_) Head;
    head->token = a->name_.token;
    head->magic = magic;
    a->free_ = std::make_unique<Free>();
    used_here = a->free_->next;
    base_here = a->base_;
    file_here = a->file_;
    if (pthread_atfork(nullptr, nullptr, keep_writes_of_child) != 0) return nullptr;
    return a.release();
  }();
  return arena;
}

bool Arena::is_copy() { return copied; }

bool Arena::contains(void const* p) const {
  auto const* const b = static_cast<std::byte const*>(p);
  return std::less_equal<>{}(base_, b) && std::less<>{}(b, base_ + size);
}

Arena::~Arena() {
  if (base_) munmap(base_, size);
  if (file_ >= 0) close(file_);
}

std::uint64_t Arena::allocate(std::int64_t bytes) {
  auto const offset = try_to_allocate(bytes);
  ASTERISM_REQUIRE(!is_copy(), unsupported, "a process made by fork has no memory that ranks share.");
  ASTERISM_REQUIRE(offset > 0, memory, "the {} GiB that a process shares with its node are full: {} more bytes are needed.", size >> 30,
                   bytes);
  return offset;
}

std::uint64_t Arena::try_to_allocate(std::int64_t bytes) {
  auto const c = size_class(bytes);
  if (is_copy()) return 0;
  std::lock_guard const lock(free_->mutex);
  auto& list = free_->blocks[c];
  if (!list.empty()) {
    auto const offset = list.back();
    list.pop_back();
    return offset;
  }
  auto const length = std::uint64_t(1) << c, align = length < 4096 ? 128 : std::uint64_t(4096);
  auto const offset = (free_->next + align - 1) / align * align;
  if (c >= 36 || offset + length > size) return 0;
  free_->next = offset + length;
  used_here = free_->next;
  return offset;
}

void Arena::release(std::uint64_t offset, std::int64_t bytes) {
  if (is_copy()) return;  // the file is the parent's
  auto const c = size_class(bytes);
  if (bytes >= returned) fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(offset), off_t(1) << c);
  std::lock_guard const lock(free_->mutex);
  free_->blocks[c].push_back(offset);
}

std::shared_ptr<Mapping const> Mapping::open(ArenaName const& name) {
  // one for all communicators, also those that are kept after an error: two thousand would take all addresses that a process has
  struct Opened {
    std::mutex mutex;
    std::map<std::array<std::uint64_t, 4>, std::weak_ptr<Mapping const>> all;
  };
  static auto& opened = *new Opened;  // never destroyed: the end of the program is told to the other ranks
  std::lock_guard const lock(opened.mutex);
  auto& known = opened.all[{name.boot, name.process, name.descriptor, name.token}];
  auto found = known.lock();
  if (!found) known = found = open_anew(name);
  return found;
}

std::shared_ptr<Mapping const> Mapping::open_anew(ArenaName const& name) {
  if (name.boot != boot_number()) return nullptr;
  auto const path = format("/proc/{}/fd/{}", name.process, name.descriptor);
  int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::shared_ptr<Mapping> m(new Mapping);
  m->base_ = map(file);
  m->process_ = name.process;
  close(file);
  if (!m->base_) return nullptr;
  // the same process number in another container is another process
  return m->head().magic == magic && m->head().token == name.token ? m : nullptr;
}

bool Mapping::read_private(std::uint64_t address, void* to, std::int64_t bytes) const {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    iovec const here{out, std::size_t(bytes)}, there{reinterpret_cast<void*>(address), std::size_t(bytes)};
    auto const n = process_vm_readv(pid_t(process_), &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    out += n;
    address += std::uint64_t(n);
    bytes -= n;
  }
  return true;
}

Mapping::~Mapping() {
  if (base_) munmap(base_, size);
}

}  // namespace asterism::comm::node
