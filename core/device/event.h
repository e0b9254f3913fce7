// A point in a stream that others can wait for.
#pragma once
#include <utility>

#include "core/device/stream.h"

namespace rush {

/// Made when it is first recorded, on the device of the stream, whatever `type` said. On the CPU it does nothing.
/// Mirrors c10::Event.
class Event {
 public:
  explicit Event(DeviceType type = kCPU, bool enable_timing = false) : type_(type), timing_(enable_timing) {}
  ~Event();
  Event(Event&& other) noexcept
      : type_(other.type_),
        timing_(other.timing_),
        device_(other.device_),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(timing_, other.timing_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  /// Marks the end of what `stream` has been given until now.
  void record(const Stream& stream);
  /// Makes what `stream` is given from now on wait for this point.
  void block(const Stream& stream) const;
  /// Whether the point has been reached; true for an event that was never recorded.
  bool query() const;
  /// Waits on the host.
  void synchronize() const;
  /// Milliseconds from this event to `end`, which both were made with enable_timing and have been reached.
  double elapsed_time(const Event& end) const;

  bool recorded() const { return handle_ != nullptr; }  // and so its handle exists
  int device_index() const { return device_; }          // -1 before it is recorded
  /// The backend's handle: a cudaEvent_t.
  void* handle() const { return handle_; }

 private:
  DeviceType type_;
  bool timing_;
  int device_ = -1;
  void* handle_ = nullptr;
};

}  // namespace rush
