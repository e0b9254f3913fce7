// Events: libtorch's at::cuda::CUDAEvent. This header needs none of CUDA's.
#pragma once
#include <memory>

#include "backends/cuda/stream/stream.h"
#include "core/device/event.h"

typedef struct CUevent_st* cudaEvent_t;  // NOLINT: as CUDA's headers declare it

namespace rush::cuda {

inline constexpr unsigned kEventDefault = 0;        // cudaEventDefault: takes the time
inline constexpr unsigned kEventDisableTiming = 2;  // cudaEventDisableTiming

// Made on the device of the stream that it is first recorded on.
class CUDAEvent {
 public:
  explicit CUDAEvent(unsigned flags = kEventDisableTiming) : event_(kCUDA, !(flags & kEventDisableTiming)) {}

  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) { event_.record(stream.unwrap()); }
  void recordOnce(const CUDAStream& stream) {
    if (!isCreated()) record(stream);
  }
  // Makes the stream's further work wait for this event.
  void block(const CUDAStream& stream) const { event_.block(stream.unwrap()); }
  bool query() const { return event_.query(); }
  // Waits on the host.
  void synchronize() const { event_.synchronize(); }
  // Milliseconds from this event to `end`; both were made with kEventDefault and have been reached.
  float elapsed_time(const CUDAEvent& end) const { return static_cast<float>(event_.elapsed_time(end.event_)); }

  bool isCreated() const { return event_.recorded(); }
  int device_index() const { return event_.device_index(); }
  cudaEvent_t event() const { return static_cast<cudaEvent_t>(event_.handle()); }

 private:
  Event event_;
};

}  // namespace rush::cuda
