#include "asterism/device/array.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>
#include <unordered_set>

#include "asterism/base/error.hpp"

namespace asterism::device {

Buffer::Buffer(std::size_t bytes) : block_(host::allocate(bytes)), data_(block_.data), bytes_(bytes) {}

Buffer::~Buffer() { host::release(block_); }

struct Context::Impl {
  struct Task {
    std::function<void(Queue&)> work;
    std::vector<std::uint64_t> after;
    std::vector<Intent> held;
  };
  explicit Impl(std::uint64_t seed) : random(seed) {
    static std::atomic<std::uint64_t> count{0};
    serial = ++count;
  }
  std::uint64_t serial;  // an address may come back for another queue, this does not
  std::mt19937_64 random;
  std::uint64_t next = 1, drained = 1;  // tasks below `drained` are done
  std::vector<Task> pending;            // task number drained + position
  std::map<std::string, std::int64_t> waits;
};

namespace {
std::map<std::string, std::int64_t>& inline_waits() {
  static std::map<std::string, std::int64_t> w;
  return w;
}
}  // namespace

Context const& Context::host() {
  static Context const c;
  return c;
}

Context Context::shuffle(std::uint64_t seed) {
  Context c;
  c.impl_ = std::make_shared<Impl>(seed);
  return c;
}

void Context::enqueue(std::vector<Intent> intents, std::function<void(Queue&)> work) const {
  if (!impl_) {
    Queue q;
    work(q);
    return;
  }
  auto const id = impl_->next++;
  Impl::Task task{std::move(work), {}, std::move(intents)};
  for (auto const& i : task.held) {
    auto& l = i.buffer->ledger;
    if (l.queue != impl_->serial) {
      // the other queue's work is done: queues are drained before a buffer changes hands
      l = {0, {}, impl_->serial};
    }
    if (l.writer) task.after.push_back(l.writer);
    if (i.access != Access::read) task.after.insert(task.after.end(), l.readers.begin(), l.readers.end());
  }
  for (auto const& i : task.held) {
    auto& l = i.buffer->ledger;
    if (i.access == Access::read) {
      l.readers.push_back(id);
    } else {
      l.writer = id;
      l.readers.clear();
    }
  }
  std::erase(task.after, id);
  impl_->pending.push_back(std::move(task));
}

void Context::wait(char const* reason) const {
  ++(impl_ ? impl_->waits : inline_waits())[reason];
  if (!impl_ || impl_->pending.empty()) return;
  auto const base = impl_->drained;
  auto tasks = std::move(impl_->pending);
  impl_->pending.clear();
  impl_->drained = impl_->next;
  std::vector<int> missing(tasks.size(), 0);
  std::vector<std::vector<std::size_t>> unblocks(tasks.size());
  std::vector<std::size_t> ready;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    std::unordered_set<std::uint64_t> const distinct(tasks[t].after.begin(), tasks[t].after.end());
    for (auto const a : distinct)
      if (a >= base && a < base + tasks.size()) {
        ++missing[t];
        unblocks[a - base].push_back(t);
      }
    if (missing[t] == 0) ready.push_back(t);
  }
  std::exception_ptr error;
  Queue q;
  while (!ready.empty()) {
    auto const pick = std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(impl_->random);
    auto const t = ready[pick];
    ready[pick] = ready.back();
    ready.pop_back();
    try {
      if (!error) tasks[t].work(q);
    } catch (...) {
      error = std::current_exception();
    }
    for (auto const u : unblocks[t])
      if (--missing[u] == 0) ready.push_back(u);
  }
  if (error) std::rethrow_exception(error);
  for (auto const m : missing) ASTERISM_ASSERT(m == 0);  // every task ran
}

std::vector<WaitCount> Context::waits() const {
  std::vector<WaitCount> out;
  for (auto const& [reason, count] : impl_ ? impl_->waits : inline_waits()) out.push_back({reason, count});
  return out;
}

Array Array::wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner) {
  Array a;
  a.buffer_ = std::make_shared<Buffer>(data, bytes, std::move(owner));
  a.bytes_ = bytes;
  return a;
}

Array Array::view(std::size_t offset, std::size_t bytes) const {
  ASTERISM_ASSERT(offset + bytes <= bytes_);
  Array a = *this;
  a.offset_ += offset;
  a.bytes_ = bytes;
  return a;
}

}  // namespace asterism::device
