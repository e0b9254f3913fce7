// The streams and events of the emulated accelerator.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "tests/labs/device/vector_clock.h"
#include "tests/labs/device/work.h"

namespace rush::labs {

// A call that would end a capture, or work that takes no part in it; CudaError's counterpart.
class CaptureError : public Error {
 public:
  using Error::Error;
};

// What a capture has recorded.
struct Recording {
  uint64_t pool = 0;
  std::set<size_t> streams;  // the captured one, and those that have waited for it
  std::vector<SharedWork> work;
};
// Of this thread; null when it captures nothing.
inline thread_local constinit Recording* current_recording = nullptr;

// Throws CaptureError, which names the last operator, while this thread captures.
void check_not_capturing(const char* what);

// Note [The emulated accelerator]
// Work that is given to a stream waits in its queue. It runs, on the CPU, when the host waits for it: one piece at a
// time, of a stream that a random number chooses among those that need not wait for an event. Whatever order events
// permit comes with some seed, so that a missing wait gives wrong numbers. The order is also checked when the work is
// given: Note [Races].
class Streams {
 public:
  // A point in a stream.
  struct Mark {
    std::shared_ptr<struct EventState> event;
    uint64_t number;  // of the event's recordings
  };

  // What a stream is given.
  struct Item {
    SharedWork work;  // null: a recording of an event, or a wait for one
    Mark mark;
    bool waits = false;
  };

  static constexpr size_t kCount = 5;  // the default stream and a pool of others

  // Of the order from now on.
  void set_seed(uint64_t seed) { random_.seed(seed); }

  size_t current() const { return current_; }
  void set_current(size_t stream) { current_ = stream; }
  size_t next_from_pool();

  // While a graph is captured the work is recorded. Throws CaptureError for a stream that takes no part.
  void give(size_t stream, SharedWork work);
  Mark record(const std::shared_ptr<EventState>& event, size_t stream);
  void wait(size_t stream, const std::shared_ptr<EventState>& event);

  // The host waits. Throws CaptureError while this thread captures.
  void synchronize();
  void synchronize(size_t stream);
  void synchronize(const Mark& mark);
  // Runs one piece of work, so that a loop of queries ends.
  bool query(const Mark& mark);
  bool query(size_t stream);
  // Whether all work up to the mark has run. If so, what the host gives from now on comes after it.
  bool has_reached(const Mark& mark);

  // What a stream has been given and has not done yet, in order.
  const std::deque<Item>& queued(size_t stream) const { return queues_[stream].items; }

  // How often the host has waited.
  size_t waits() const { return waits_; }

  // The mutex of all that is here and of the pools: workers of data loaders take pinned memory.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  struct Queue {
    std::deque<Item> items;
    VectorClock clock;
  };
  VectorClock clock_of_next(size_t stream);  // of what the stream is given next
  bool is_blocked(const Item& item) const;
  void run_one();

  std::recursive_mutex mutex_;
  std::mt19937_64 random_;
  Queue queues_[kCount];
  VectorClock host_;
  size_t from_pool_ = 0, waits_ = 0;
  static inline thread_local size_t current_ = 0;
};

struct EventState {
  uint64_t recorded = 0, reached = 0;
  VectorClock clock;                     // of what the last recording comes after
  const Recording* recording = nullptr;  // that it was last recorded in
};

}  // namespace rush::labs
