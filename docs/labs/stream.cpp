// Lab 11, streams and events: this file takes the place of core/device/stream.cpp. What each function has to do stands
// in docs/labs/stream.md. Write them in this order; `./rush lab 11` checks them in this order.
#include "core/device/stream.h"

#include "core/device/backend.h"
#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/device/hand_over.h"
#include "core/error/error.h"
#include "core/tensor.h"

namespace rush {

// This one is written. A device without a number is the current one.
Stream current_stream(Device device) {
  if (!device.is_accelerator()) return {};
  Backend& backend = backend_of(device.type);
  return backend.current_stream(device.index < 0 ? backend.current_device() : device.index);
}

// ---- guards ----

// Makes `stream`, a queue, the current one, and keeps in original_ the one before; no queue where nothing has changed.
void StreamGuard::enter(const Stream& stream) {
  RUSH_THROW(NotImplementedError, "begin here: set original_ to ", backend_of(stream.device.type).current_device(),
             "'s current stream and make the given one current, unless it is");
}

// Called where original_ is a queue.
void StreamGuard::leave() noexcept {}

// ---- events ----

// This one is written.
Event::~Event() {
  if (handle_) backend_or_null(type_)->destroy_event(handle_, device_);
}

// Marks the end of what `stream` has been given. The first recording makes the handle, on the stream's device.
void Event::record(const Stream& stream) {
  RUSH_THROW(NotImplementedError, "next: make handle_ on device ", stream.device,
             " by Backend::create_event unless there is one, and record it; nothing for a stream that is no queue");
}

// What `stream` is given from now on waits for the mark; the host does not.
void Event::block(const Stream& stream) const {
  RUSH_THROW(NotImplementedError, "next: let the stream of ", stream.device, " wait for handle_, if there is one");
}

// The host waits for the mark.
void Event::synchronize() const {
  RUSH_THROW(NotImplementedError, "next: wait for handle_, which is ", handle_ ? "" : "not ", "there");
}

// Whether the mark has been reached.
bool Event::query() const {
  RUSH_THROW(NotImplementedError, "next: ask for handle_, which is ", handle_ ? "" : "not ", "there");
}

// This one is written.
double Event::elapsed_time(const Event& end) const {
  RUSH_CHECK_VALUE(timing_ && end.timing_, "Event: elapsed_time needs events made with enable_timing");
  RUSH_CHECK_VALUE(handle_ && end.handle_, "Event: elapsed_time needs events that were recorded");
  return backend_of(type_).elapsed_milliseconds(handle_, end.handle_);
}

// ---- waits ----

// What `waiting` is given from now on comes after what `first` has been given until now.
void wait_stream(const Stream& waiting, const Stream& first) {
  RUSH_THROW(NotImplementedError, "next: record an event on the stream of ", first.device, ", and let that of ",
             waiting.device, " wait for it; where that is the CPU, the host");
}

// Makes a tensor of one stream usable on another, until that is done with it.
void hand_over(const Tensor& tensor, const Stream& producer, const Stream& consumer) {
  RUSH_THROW(NotImplementedError, "last: let the stream of ", consumer.device, " wait for that of ", producer.device,
             ", and tell the allocator who uses the memory of a tensor of shape ", tensor.sizes());
}

}  // namespace rush
