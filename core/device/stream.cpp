// Streams, the events that order them, and the guard that makes one current: what a backend is asked for, and when.
#include "core/device/stream.h"

#include "core/device/backend.h"
#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/device/hand_over.h"
#include "core/error/error.h"
#include "core/tensor.h"

namespace rush {

Stream current_stream(Device device) {
  if (!device.is_accelerator()) return {};
  Backend& backend = backend_of(device.type);
  return backend.current_stream(device.index < 0 ? backend.current_device() : device.index);
}

// ---- guards ----

void StreamGuard::enter(const Stream& stream) {
  Backend& backend = backend_of(stream.device.type);
  original_ = backend.current_stream(stream.device.index);
  if (original_ == stream) {
    original_ = {};
  } else {
    backend.set_current_stream(stream);
  }
}

void StreamGuard::leave() noexcept {
  // Choosing among streams asks nothing of the driver.
  backend_or_null(original_.device.type)->set_current_stream(original_);
}

// ---- events ----

Event::~Event() {
  if (handle_) backend_or_null(type_)->destroy_event(handle_, device_);
}

void Event::record(const Stream& stream) {
  if (!stream.is_queue()) return;
  if (!handle_) type_ = stream.device.type;
  Backend& backend = backend_of(type_);
  if (!handle_) {
    device_ = stream.device.index;
    handle_ = backend.create_event(device_, timing_);
  }
  RUSH_CHECK_VALUE(stream.device == Device(type_, device_), "Event: made on ", Device(type_, device_),
                   ", recorded on a stream of ", stream.device);
  backend.record(handle_, stream);
}

void Event::block(const Stream& stream) const {
  if (handle_ && stream.is_queue()) backend_of(type_).wait(stream, handle_);
}

bool Event::query() const { return !handle_ || backend_of(type_).query_event(handle_); }

void Event::synchronize() const {
  if (handle_) backend_of(type_).synchronize_event(handle_);
}

double Event::elapsed_time(const Event& end) const {
  RUSH_CHECK_VALUE(timing_ && end.timing_, "Event: elapsed_time needs events made with enable_timing");
  RUSH_CHECK_VALUE(handle_ && end.handle_, "Event: elapsed_time needs events that were recorded");
  return backend_of(type_).elapsed_milliseconds(handle_, end.handle_);
}

// ---- waits ----

void wait_stream(const Stream& waiting, const Stream& first) {
  if (waiting == first || !first.is_queue()) return;
  Event event(first.device.type);
  event.record(first);
  if (waiting.is_queue()) {
    event.block(waiting);
  } else {
    event.synchronize();
  }
}

void hand_over(const Tensor& tensor, const Stream& producer, const Stream& consumer) {
  if (!producer.is_queue() || !consumer.is_queue() || producer == consumer) return;
  wait_stream(consumer, producer);
  if (tensor.device() == consumer.device) tensor.record_stream(consumer);
}

}  // namespace rush
