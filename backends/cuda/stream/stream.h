// Streams: libtorch's c10::cuda::CUDAStream and its functions. This header needs none of CUDA's.
#pragma once
#include <utility>

#include "core/device/guard.h"
#include "core/device/stream.h"

typedef struct CUstream_st* cudaStream_t;  // NOLINT: as CUDA's headers declare it

namespace rush::cuda {

class CUDAEvent;

// Note [Streams]
// Work in one stream runs in order; work in two may overlap. Every thread has a current stream per device, at first the
// default stream, and operators give their work to it. A tensor belongs to the stream that was current when it was
// made: another stream that uses it must wait for that one first (wait_stream), and Tensor::record_stream keeps its
// memory from being handed out too early. The backward pass runs every node on the stream of its forward call.
//
// Streams come from pools of 32 per device and priority, handed out in turn and never destroyed, as in PyTorch. They do
// not synchronise with the default stream by themselves.
class CUDAStream {
 public:
  CUDAStream(int device, cudaStream_t stream) : device_(device), stream_(stream) {}
  explicit CUDAStream(const Stream& stream)
      : device_(stream.device.index), stream_(static_cast<cudaStream_t>(stream.handle)) {}

  Device device() const { return Device(kCUDA, device_); }
  int device_index() const { return device_; }
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  Stream unwrap() const { return {device(), stream_}; }
  operator Stream() const { return unwrap(); }
  int64_t id() const { return unwrap().id(); }

  bool query() const;
  // Waits on the host; throws what kernels had to report.
  void synchronize() const;
  // 0 or negative: the lower, the sooner its work is chosen.
  int priority() const;
  // Work that is given to this stream from now on waits for what the other has, or for the event.
  void wait_stream(const CUDAStream& other) const { rush::wait_stream(unwrap(), other.unwrap()); }
  void wait_event(const CUDAEvent& event) const;

  friend bool operator==(const CUDAStream& a, const CUDAStream& b) {
    return a.device_ == b.device_ && a.stream_ == b.stream_;
  }

 private:
  int device_;
  cudaStream_t stream_;
};

// `device` -1 means the current device everywhere.
CUDAStream getCurrentCUDAStream(int device = -1);
CUDAStream getDefaultCUDAStream(int device = -1);
// The next stream of the pool of a priority: 0, or negative for more urgent ones; values beyond what the device has
// mean the nearest.
CUDAStream getStreamFromPool(int priority, int device = -1);
CUDAStream getStreamFromPool(bool is_high_priority = false, int device = -1);
// A stream of the current device that is in no pool, the calling thread's alone: graphs::capture_stream().
CUDAStream side_stream();
bool is_side_stream(cudaStream_t stream);
// Wraps a stream that the caller owns and keeps alive.
CUDAStream getStreamFromExternal(cudaStream_t stream, int device);
// Makes it this thread's stream on its device; the current device stays.
void setCurrentCUDAStream(CUDAStream stream);

// Until the end of the scope the device of the stream is current, and the stream on it.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream) : stream_(stream), guard_(stream.unwrap()) {}
  CUDAStream current_stream() const { return stream_; }

 private:
  CUDAStream stream_;
  StreamGuard guard_;
};

// Until the end of the scope the device is current.
class CUDAGuard {
 public:
  explicit CUDAGuard(int device) : guard_(Device(kCUDA, device)) {}
  explicit CUDAGuard(Device device) : guard_(device) {}

 private:
  DeviceGuard guard_;
};

}  // namespace rush::cuda
