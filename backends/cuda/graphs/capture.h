// The capture of a graph that this thread is in, as the rest of the backend sees it.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "backends/cuda/thread_state.h"
#include "core/macros.h"
#include "core/philox.h"
#include "core/storage.h"

namespace rush {
class GeneratorImpl;
namespace graphs {
struct ReplayHook;
}
}  // namespace rush

namespace rush::cuda {

class Capture {
 public:
  virtual int device() const = 0;
  // Whether what `stream` is given now becomes part of the graph: the captured stream, and those that waited for it.
  virtual bool takes_part(cudaStream_t stream) const = 0;
  // See GeneratorImpl::reserve, and Note [Random numbers in graphs].
  virtual PhiloxState reserve(GeneratorImpl& generator, uint64_t increments) = 0;
  // How far the graph's calls have come in the generator's stream, from where a replay starts.
  virtual uint64_t position_of(const GeneratorImpl& generator) const = 0;
  virtual void set_position(GeneratorImpl& generator, uint64_t position) = 0;
  // The graph's copies use the memory of the host as long as it lives.
  virtual void keep(const StorageImpl& storage) = 0;
  // See core/graphs/graph.h.
  virtual void add_hook(std::shared_ptr<graphs::ReplayHook> hook) = 0;
  // Events mark a point of the graph, or one outside of it.
  virtual void recorded(void* event, cudaStream_t stream) = 0;
  virtual void destroyed(const void* event) = 0;
  virtual bool has_event(const void* event) const = 0;

 protected:
  ~Capture() = default;
};

// Null unless this thread is capturing.
inline thread_local constinit Capture* current_capture = nullptr;
// Of all threads. While one captures, no other may ask the driver for the state of an event.
inline constinit std::atomic<int> captures_under_way{0};

// Held by threads that capture a stream of the device, together, and by one that waits for the whole device, alone:
// CUDA refuses to wait for a device of which a stream is captured, and the capture is lost.
inline std::shared_mutex& captures_of(int device) {
  static auto& mutexes = *new std::array<std::shared_mutex, kMaxDevices>;
  return mutexes[static_cast<size_t>(device)];
}
// Waits for the current device, and for other threads' captures on it before.
inline cudaError_t wait_for_device() {
  const std::unique_lock no_capture(captures_of(thread_state.device));
  return cudaDeviceSynchronize();
}

// Throw a CudaError saying that `what`, a phrase such as "waiting for the GPU", cannot be captured, and the name of the
// last operator. The capture is as it was.
[[noreturn]] RUSH_COLD void throw_cannot_be_captured(const char* what);
[[noreturn]] RUSH_COLD void throw_outside_of_capture(const char* what);

// Before a call that would end a capture of this thread.
inline void check_not_capturing(const char* what) {
  if (RUSH_UNLIKELY(current_capture != nullptr)) throw_cannot_be_captured(what);
}
// Before work is given to a stream of the captured device.
inline void check_takes_part(int device, cudaStream_t stream, const char* what) {
  if (RUSH_LIKELY(current_capture == nullptr) || current_capture->device() != device) return;
  if (!current_capture->takes_part(stream)) throw_outside_of_capture(what);
}

}  // namespace rush::cuda
