// The two ends of a stream of messages by MPI, from one rank to another.
//
// A message is an envelope of 64 bytes; a few receives are always posted for them. Payload that does not fit follows as a message of
// its own, whose receive is posted when its envelope is read: where it goes is known then. Credits go back the same way.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "asterism/comm/channels/credits.hpp"
#include "asterism/comm/mpi/loaded_mpi.hpp"

namespace asterism::comm::channels {

struct Buffer {
  std::unique_ptr<std::byte[]> data;
  std::size_t capacity = 0;  // 0: none
};

/// Buffers that go round, by powers of two.
class Buffers {
 public:
  Buffer take(std::size_t bytes) {
    auto const capacity = std::bit_ceil(std::max<std::size_t>(bytes, 64));
    auto& free = free_[std::size_t(std::countr_zero(capacity))];
    if (free.empty()) return {std::make_unique_for_overwrite<std::byte[]>(capacity), capacity};
    auto out = std::move(free.back());
    free.pop_back();
    return out;
  }
  void give(Buffer b) {
    if (b.capacity) free_[std::size_t(std::countr_zero(b.capacity))].push_back(std::move(b));
  }

 private:
  std::array<std::vector<Buffer>, 64> free_;
};

struct Envelope {
  static constexpr std::int64_t small_size = 48;
  std::uint32_t channel = 0, lent : 1 = 0;
  std::uint32_t below : 31 = 0;  ///< a credit for messages the other way: the lower bits of Credit::below
  std::int64_t bytes = 0;
  std::byte small[small_size];
};
static_assert(sizeof(Envelope) == 64 && sizeof(Credit) == 64);

/// The requests and buffers of all streams of one set of channels.
class Requests {
 public:
  enum Tag : int { envelope, payload, credit };
  Requests(MpiApi::Comm handle, std::shared_ptr<int const> first_tag);
  ~Requests();
  Requests(Requests const&) = delete;

  /// `kept` lives until this is sent. Returns what sent() asks for.
  std::uint64_t send(void const* data, std::int64_t bytes, int to, Tag tag, Buffer kept = {});
  bool sent(std::uint64_t load) const { return load < first_load_; }
  void progress();
  int place();
  void free_place(int place) { free_places_.push_back(place); }
  void receive(int place, void* to, std::int64_t bytes, int from, Tag tag);
  bool test(int place);
  /// To be called before buffers of receives go. Waits, and says so, for what is not sent, unless nobody answers.
  void end(bool answered);
  Buffers buffers;

 private:
  struct Load {  // requests that are tested together
    MpiApi::Batch batch = nullptr;
    int sends = 0;
    std::vector<Buffer> kept;
  };
  MpiApi::Comm handle_;
  std::shared_ptr<int const> first_tag_;
  MpiApi::Batch receives_;
  int places_ = 0;
  std::vector<int> free_places_;
  std::deque<Load> loads_;
  std::vector<Load> spare_;
  std::uint64_t first_load_ = 0;
};

/// Receives of one size that are always posted, in turn.
template <class T, int count>
class Posted {
 public:
  Posted(Requests& requests, int from, Requests::Tag tag)
      : requests_(requests), from_(from), tag_(tag), items_(std::make_unique<std::array<T, count>>()) {
    for (int i = 0; i < count; ++i) {
      places_[std::size_t(i)] = requests_.place();
      post(std::size_t(i));
    }
  }
  /// The next one that has come.
  std::optional<T> next() {
    if (!requests_.test(places_[turn_])) return std::nullopt;
    T const out = (*items_)[turn_];
    post(turn_);
    turn_ = (turn_ + 1) % count;
    return out;
  }

 private:
  void post(std::size_t i) { requests_.receive(places_[i], &(*items_)[i], sizeof(T), from_, tag_); }
  Requests& requests_;
  int from_;
  Requests::Tag tag_;
  std::unique_ptr<std::array<T, count>> items_;
  std::array<int, count> places_{};
  std::size_t turn_ = 0;
};

class MpiReceiver;

class MpiSender {
 public:
  MpiSender(std::shared_ptr<Requests> requests, int to);
  struct Sent {
    std::uint64_t number = 0, load = 0;
  };
  /// counter: one more, and one less when it was released.
  Sent send(std::uint32_t channel, std::int64_t& counter, std::span<std::byte const> data, bool lend);
  /// Released by the receiver, and MPI does not need the data any more.
  bool returned(Sent const& s) const { return unreleased_.released(s.number) && requests_->sent(s.load); }
  /// Takes credits that have come.
  void look();
  /// What an envelope of the other direction carries.
  void take_carried(std::uint32_t below);
  /// The stream from that rank, if there is one: envelopes carry its credits.
  void set_back(MpiReceiver* back) { back_ = back; }

 private:
  std::shared_ptr<Requests> requests_;
  int to_;
  MpiReceiver* back_ = nullptr;
  unsigned sent_ = 0;
  Posted<Credit, 4> credits_;
  Unreleased<std::int64_t*> unreleased_;
};

class MpiReceiver {
 public:
  /// landing(channel, number): called for each message when its envelope is read; where its payload shall go, or nullptr.
  using Landing = std::function<std::byte*(std::uint32_t channel, std::uint64_t number)>;
  MpiReceiver(std::shared_ptr<Requests> requests, int from, Landing landing);

  struct Message {
    std::uint64_t number = 0;
    std::uint32_t channel = 0;
    bool lent = false;
    std::int64_t bytes = 0;
    Buffer buffer;  ///< none: it is where landing() said
    int place = -1;
  };
  /// The next one that is here as a whole.
  std::optional<Message> next();
  void release(std::uint64_t number, bool lent) { releases_.release(number, lent); }
  void flush() { releases_.flush(); }
  std::uint64_t carried() { return releases_.carried(); }
  /// The stream to that rank, if there is one: its credits come with envelopes.
  void set_back(MpiSender* back) { back_ = back; }
  /// A message that is on its way to an array goes into a buffer instead: false as long as one has to wait.
  bool divert(std::uint64_t number, std::byte const* array);

 private:
  static constexpr std::size_t ahead = 8;  // messages whose envelopes were read before they are asked for
  struct Line {
    Requests& requests;
    int to;
    void send(Credit const& c) const;
  };
  void look();
  bool complete(Message& m);
  std::shared_ptr<Requests> requests_;
  int from_;
  Landing landing_;
  MpiSender* back_ = nullptr;
  Posted<Envelope, 8> envelopes_;
  Line line_;
  Releases<Line> releases_;
  std::deque<Message> coming_;
  std::uint64_t count_ = 0;
};

}  // namespace asterism::comm::channels
