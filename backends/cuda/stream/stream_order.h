// Which stream's work comes after which, as far as streams and the host have waited for one another.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/device/stream.h"

namespace rush::cuda {

// Note [Which stream has waited for which]
// Every stream counts its moments: one ends when an event is recorded or another stream or the host waits for the
// stream. Each stream keeps, for every other, the last moment that its own further work comes after (a vector clock:
// Fidge, "Timestamps in message-passing systems", 1988); so does the host. An event carries what its stream knew when
// it was recorded, and a stream that waits for it learns that. What the host has waited for is over for all streams,
// since the host queues all work: with several threads this may hide a report, but never makes a false one.
//
// It is kept in the debug mode of the caching allocator only, and sees what goes through Rushlight's streams and
// events. Waiting with calls of CUDA's own is not seen.
class StreamOrder {
 public:
  // A point in a stream's work.
  struct Moment {
    Stream stream;
    uint64_t time = 0;
  };

  // What `stream` is given now.
  Moment now(const Stream& stream);
  void recorded(const void* event, const Stream& stream);
  // Its address may become another event's.
  void destroyed(const void* event);
  void waited(const Stream& stream, const void* event);
  // The host has seen the end of the stream's work, the event, or the end of all work of the device.
  void host_waited(const Stream& stream);
  void host_waited(const void* event);
  void host_waited_for_device(int device);

  // Whether all that `stream` is given from now on comes after `moment`.
  bool is_behind(const Stream& stream, const Moment& moment);

 private:
  using Key = std::pair<int, void*>;
  using Clock = std::map<Key, uint64_t>;

  struct State {
    uint64_t now = 1;
    Clock behind;  // by stream: the last moment that is surely over
  };

  static Key key(const Stream& stream) { return {stream.device.index, stream.handle}; }
  static void learn(Clock& clock, const Clock& news);
  // What is over at the end of what the stream has now, whose moment ends.
  Clock end_of(const Stream& stream);

  std::mutex mutex_;
  std::map<Key, State> streams_;
  std::unordered_map<const void*, Clock> events_;
  Clock host_;
};

// That of the process; null unless the debug mode is on.
inline constinit StreamOrder* stream_order = nullptr;

}  // namespace rush::cuda
