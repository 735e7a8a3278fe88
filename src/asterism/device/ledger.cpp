#include "asterism/device/ledger.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/race_check.hpp"

namespace asterism::device {
namespace {

using host::Ticket;

struct Counts {
  std::mutex mutex;
  std::map<std::string, CopyCount> by_event;
  bool forbidden = false;
};
Counts& counts() {
  static auto* c = new Counts;  // queues may end after static destruction began
  return *c;
}

constexpr auto index(Memory m) { return std::size_t(m); }
/// Values of the strict queue that must not be read any more are spoiled there and on the host.
constexpr Memory strict_other(Memory m) { return m == Memory::host ? Memory::apart : Memory::host; }

void count_copy(int event, Memory to, std::size_t bytes, bool by_host) {
  auto const name = event >= 0 ? profile::name_of(event) : std::string(by_host ? "host access" : "outside of events");
  auto& c = counts();
  std::lock_guard const lock(c.mutex);
  ASTERISM_REQUIRE(
      !c.forbidden || by_host, unsupported,
      "{} needs {} bytes copied {} (-forbid_copies). The operation has no form for this memory, or its operands lie in another.", name,
      bytes, to == Memory::host ? "to the host" : "to the device");
  auto& n = c.by_event[name];
  n.event = name;
  ++(to == Memory::host ? n.to_host : n.to_apart);
  (to == Memory::host ? n.to_host_bytes : n.to_apart_bytes) += std::int64_t(bytes);
}

/// Whether it is done; what the host has seen to be done comes before all that it submits from now on.
bool seen_done(Ticket const& t) {
  if (!t.tasks->reached(t.number)) return false;
  race_check::host_waited(t.tasks->serial(), t.number);
  return true;
}

/// Of one in-order task queue the last ticket stands for those before.
void add_reader(std::vector<Ticket>& readers, std::size_t& most, Ticket const& ticket) {
  if (ticket.tasks->in_order())
    for (auto& r : readers)
      if (r.tasks == ticket.tasks) {
        r.number = std::max(r.number, ticket.number);
        return;
      }
  if (readers.size() >= most) {
    std::erase_if(readers, seen_done);
    most = std::max<std::size_t>(16, 2 * readers.size());
  }
  readers.push_back(ticket);
}

constexpr int spoiled = 0xff;  // NaN in every floating-point type, -1 in integers

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  blocks_[0] = host::allocate(bytes);
  data_[0] = blocks_[0].data;
}

Buffer::Buffer(void* data, std::size_t bytes, std::shared_ptr<void> owner) : bytes_(bytes), owner_(std::move(owner)) { data_[0] = data; }

std::shared_ptr<Buffer> Buffer::on_gpu(void* data, std::size_t bytes, std::shared_ptr<void> owner) {
  auto b = std::make_shared<Buffer>(bytes);  // the host's pages are there when they are touched
  b->data_[index(Memory::gpu)] = data;
  b->owns_gpu_data_ = false;
  b->owner_ = std::move(owner);
  b->valid_[index(Memory::host)] = false;
  b->valid_[index(Memory::gpu)] = true;
  b->involved_ = true;
  return b;
}

std::shared_ptr<Buffer> Buffer::unified(std::size_t bytes) {
  auto b = std::make_shared<Buffer>(std::size_t(0));
  b->bytes_ = bytes;
  if (bytes > 0) b->data_[index(Memory::host)] = b->data_[index(Memory::gpu)] = gpu::allocate_unified(bytes);
  b->unified_ = true;
  b->make_valid(Memory::host);
  b->involved_ = true;
  return b;
}

Buffer::Buffer(Buffer& whole, std::size_t offset, std::size_t bytes)
    : bytes_(bytes), owns_gpu_data_(false), unified_(whole.unified_), whole_(&whole), offset_(offset) {
  for (std::size_t m = 0; m < memories; ++m) {
    if (whole.data_[m]) data_[m] = static_cast<std::byte*>(whole.data_[m]) + offset;
    valid_[m] = whole.valid_[m];
  }
  involved_.store(whole.involved(), std::memory_order_relaxed);
}

void Buffer::shrink(std::size_t bytes) {
  ASTERISM_ASSERT(bytes <= bytes_ && parts_.empty() && !whole_ && !involved());
  bytes_ = bytes;
  host::shrink(blocks_[0], bytes);
}

void Buffer::divide(std::vector<std::size_t> const& sizes) {
  ASTERISM_ASSERT(parts_.empty() && !whole_ && !writer_.tasks && readers_.empty());
  std::size_t at = 0;
  for (auto const size : sizes) {
    parts_.push_back(std::unique_ptr<Buffer>(new Buffer(*this, at, size)));
    at += size;
  }
  ASTERISM_ASSERT(at == bytes_);
}

void Buffer::provide(Memory m, void* stream) {
  auto& data = data_[std::size_t(m)];
  if (data || m == Memory::host || bytes_ == 0) return;
  if (whole_) {
    whole_->provide(m, stream);
    data = static_cast<std::byte*>(whole_->data_[std::size_t(m)]) + offset_;
  } else if (m == Memory::apart) {
    blocks_[std::size_t(m)] = host::allocate(bytes_);
    data = blocks_[std::size_t(m)].data;
  } else {
    data = gpu::allocate(bytes_, stream);
  }
}

Buffer::~Buffer() {
  race_check::forget(data_[0], bytes_);
  if (whole_) return;
  for (auto const& b : blocks_) host::release(b);
  if (unified_) {
    if (bytes_ > 0) gpu::release_unified(data_[0]);
  } else if (data_[index(Memory::gpu)] && owns_gpu_data_) gpu::release(data_[index(Memory::gpu)], bytes_);
}

std::mutex& Ledger::mutex() {
  static auto* m = new std::mutex;
  return *m;
}

std::vector<CopyCount> copy_counts() {
  auto& c = counts();
  std::lock_guard const lock(c.mutex);
  std::vector<CopyCount> out;
  for (auto const& [name, n] : c.by_event) out.push_back(n);
  return out;
}

void reset_copy_counts() {
  auto& c = counts();
  std::lock_guard const lock(c.mutex);
  c.by_event.clear();
}

void set_forbid_copies(bool on) {
  auto& c = counts();
  std::lock_guard const lock(c.mutex);
  c.forbidden = on;
}

void Ledger::Preparation::run(void* stream) const {
  for (auto const& c : copies) {
    if (c.from != Memory::gpu && c.to != Memory::gpu) {
      std::memcpy(c.buffer->data(c.to), c.buffer->data(c.from), c.buffer->bytes());
    } else {
      (c.to == Memory::gpu ? gpu::copy_in : gpu::copy_out)(c.buffer->data(c.to), c.buffer->data(c.from), c.buffer->bytes(), stream);
    }
  }
  for (auto const& [buffer, memory] : spoils) std::memset(buffer->data(memory), spoiled, buffer->bytes());
}

Ledger::Preparation Ledger::prepare(std::vector<Intent> const& intents, Memory memory, bool conditional, int event, void* stream,
                                    std::vector<Ticket>& after) {
  Preparation out;
  for (auto const& i : intents) {
    auto& b = *i.buffer;
    auto const here = i.at.value_or(memory);
    auto const m = index(here);
    if (b.writer_.tasks) after.push_back(b.writer_);
    if (b.made_[m].tasks) after.push_back(b.made_[m]);
    if (i.access != Access::read) after.insert(after.end(), b.readers_.begin(), b.readers_.end());
    bool const whole_is_new = b.whole_ && !b.whole_->data_[m];
    b.provide(here, stream);
    if (whole_is_new && here == Memory::gpu) out.provided.push_back(b.whole_);
    // a part leaves the rest as it is, and so does what may not run
    bool const needs = i.access != Access::write || !i.whole || conditional;
    bool const copied = std::any_of(out.copies.begin(), out.copies.end(), [&](auto const& c) { return c.buffer == i.buffer; });
    bool const filled = b.valid_[0] || b.valid_[1] || b.valid_[2];
    if (needs && filled && !b.valid_[m] && b.bytes_ > 0 && !copied) {
      auto const copy = [&](Memory from, Memory to) {
        count_copy(event, to, b.bytes_, false);
        out.copies.push_back({i.buffer, from, to});
        if (b.made_[index(from)].tasks) after.push_back(b.made_[index(from)]);
      };
      if (!b.valid_[index(Memory::host)]) copy(b.valid_[index(Memory::apart)] ? Memory::apart : Memory::gpu, Memory::host);
      if (here != Memory::host && !(here == Memory::gpu && b.unified_)) copy(Memory::host, here);
    }
  }
  if (memory == Memory::gpu) return out;
  auto const o = index(strict_other(memory));
  if (memory == Memory::apart || std::any_of(intents.begin(), intents.end(), [](auto const& i) { return i.buffer->data_[1]; }))
    for (auto const& i : intents) {
      if (i.access == Access::read || i.buffer->bytes_ == 0) continue;
      auto const used = [&](auto const& j) { return j.buffer == i.buffer && (j.access != Access::write || !j.whole); };
      if (memory == Memory::apart && !conditional && std::none_of(intents.begin(), intents.end(), used))
        out.spoils.emplace_back(i.buffer, memory);
      if (i.buffer->data_[o]) out.spoils.emplace_back(i.buffer, strict_other(memory));  // the old values there
    }
  return out;
}

void Ledger::record(std::vector<Intent> const& intents, Memory memory, Preparation const& prepared, Ticket const& ticket) {
  for (auto const& c : prepared.copies) {
    c.buffer->make_valid(c.to);
    c.buffer->made_[index(c.to)] = ticket;
  }
  for (auto* const whole : prepared.provided)  // memory of a stream: the other parts are used after it was made there
    for (auto const& part : whole->parts_)
      if (auto& made = part->made_[index(Memory::gpu)]; !made.tasks) made = ticket, part->involved_.store(true, std::memory_order_relaxed);
  for (auto const& i : intents) {
    auto& b = *i.buffer;
    b.involved_.store(true, std::memory_order_relaxed);
    if (i.access == Access::read) {
      add_reader(b.readers_, b.readers_kept_, ticket);
    } else {
      b.writer_ = ticket;
      b.readers_.clear();
      std::fill(std::begin(b.valid_), std::end(b.valid_), false);
      b.make_valid(i.at.value_or(memory));
    }
  }
}

void Ledger::discard(Buffer& b) {
  std::lock_guard const lock(mutex());
  std::fill(std::begin(b.valid_), std::end(b.valid_), false);
  b.involved_.store(true, std::memory_order_relaxed);
}

void Ledger::settle(Buffer& b, Access access, char const* reason) {
  std::vector<Ticket> before;
  {
    std::lock_guard const lock(mutex());
    if (b.writer_.tasks) before.push_back(b.writer_);
    if (b.made_[0].tasks) before.push_back(b.made_[0]);
    if (access != Access::read) before.insert(before.end(), b.readers_.begin(), b.readers_.end());
  }
  for (auto const& t : before) {
    if (!seen_done(t)) wait_for(t, reason);
    else if (auto const error = t.tasks->take_error()) std::rethrow_exception(error);  // it may not have been run
  }
  std::lock_guard const lock(mutex());
  if (!b.valid_[0] && (b.valid_[1] || b.valid_[2]) && b.bytes_ > 0) {
    count_copy(profile::current(), Memory::host, b.bytes_, true);
    if (b.valid_[1]) std::memcpy(b.data_[0], b.data_[1], b.bytes_);
    else gpu::copy_out_now(b.data_[0], b.data_[2], b.bytes_);
  }
  if (access != Access::read) b.valid_[1] = b.valid_[2] = false;
  b.make_valid(Memory::host);
  std::erase_if(b.readers_, seen_done);
  for (auto* t : {&b.writer_, &b.made_[0], &b.made_[1], &b.made_[2]})
    if (t->tasks && seen_done(*t)) *t = {};
  if (b.readers_.empty() && !b.writer_.tasks && !b.data_[1] && !b.data_[2]) b.involved_.store(false, std::memory_order_relaxed);
}

void wait_for(Ticket const& ticket, char const* reason) {
  auto& tasks = *ticket.tasks;
  double const start = profile::now();
  auto const span = profile::ticks_now();
  tasks.reach(ticket.number);
  tasks.count_wait(reason, profile::now() - start);
  profile::note_span("wait", span);
  race_check::host_waited(tasks.serial(), ticket.number);
  {
    std::lock_guard const lock(Ledger::mutex());
    tasks.retire();
  }
  if (auto const error = tasks.take_error()) std::rethrow_exception(error);
}

}  // namespace asterism::device
