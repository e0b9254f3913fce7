#include "backends/cuda/stream/stream.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/stream/current_stream.h"
#include "backends/cuda/stream/event.h"
#include "backends/cuda/stream/stream_order.h"
#include "backends/cuda/thread_state.h"

namespace rush::cuda {

cudaStream_t current_stream() { return thread_state.streams[thread_state.device]; }
cudaStream_t current_stream(int device) { return thread_state.streams[device]; }

void synchronize_current_stream() {
  check_not_capturing("waiting for a stream");
  RUSH_CUDA_CHECK(cudaStreamSynchronize(current_stream()));
  if (RUSH_UNLIKELY(stream_order))
    stream_order->host_waited(Stream{Device(kCUDA, thread_state.device), current_stream()});
}

namespace {

constexpr int kStreamsPerPool = 32;
constexpr int kPriorities = 4;  // that we tell apart: 0, -1, -2, -3

struct Pools {
  std::mutex mutex;
  struct Pool {
    std::array<cudaStream_t, kStreamsPerPool> streams{};
    unsigned next = 0;
  };
  Pool pools[kMaxDevices][kPriorities];
};

// Never destroyed: at exit the driver may be gone already.
Pools& pools() {
  static Pools& instance = *new Pools;
  return instance;
}

// Those of threads that have ended.
struct IdleSideStreams {
  std::mutex mutex;
  std::vector<cudaStream_t> of_device[kMaxDevices];
};

IdleSideStreams& idle_side_streams() {
  static IdleSideStreams& instance = *new IdleSideStreams;
  return instance;
}

// A thread's, which another may have when it ends.
struct SideStreams {
  std::array<cudaStream_t, kMaxDevices> streams{};

  ~SideStreams() {
    IdleSideStreams& idle = idle_side_streams();
    const std::lock_guard lock(idle.mutex);
    for (size_t device = 0; device < streams.size(); ++device) {
      if (streams[device]) idle.of_device[device].push_back(streams[device]);
    }
  }
};

cudaStream_t& own_side_stream() {
  thread_local SideStreams own;
  return own.streams[static_cast<size_t>(thread_state.device)];
}

int index_of(int device) { return concrete_device(Device(kCUDA, device)).index; }

}  // namespace

CUDAStream getCurrentCUDAStream(int device) {
  const int index = index_of(device);
  return {index, thread_state.streams[index]};
}

CUDAStream getDefaultCUDAStream(int device) { return {index_of(device), nullptr}; }

CUDAStream getStreamFromPool(int priority, int device) {
  const int index = index_of(device);
  const CUDAGuard guard(index);
  int lowest = 0, highest = 0;  // "highest" is the most negative number
  RUSH_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  const int level = std::clamp(-priority, 0, std::min(-highest, kPriorities - 1));
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  Pools::Pool& pool = all.pools[index][level];
  cudaStream_t& stream = pool.streams[pool.next++ % kStreamsPerPool];
  if (!stream) RUSH_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -level));
  return {index, stream};
}

CUDAStream getStreamFromPool(bool is_high_priority, int device) {
  return getStreamFromPool(is_high_priority ? -kPriorities : 0, device);
}

CUDAStream side_stream() {
  const int index = thread_state.device;
  cudaStream_t& stream = own_side_stream();
  if (!stream) {
    IdleSideStreams& all = idle_side_streams();
    const std::lock_guard lock(all.mutex);
    std::vector<cudaStream_t>& idle = all.of_device[index];
    if (idle.empty()) {
      RUSH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    } else {
      stream = idle.back();
      idle.pop_back();
    }
  }
  return {index, stream};
}

bool is_side_stream(cudaStream_t stream) { return stream && stream == own_side_stream(); }

CUDAStream getStreamFromExternal(cudaStream_t stream, int device) { return {index_of(device), stream}; }

void setCurrentCUDAStream(CUDAStream stream) { thread_state.streams[index_of(stream.device_index())] = stream; }

bool CUDAStream::query() const { return backend_of(kCUDA).query(unwrap()); }
void CUDAStream::synchronize() const { backend_of(kCUDA).synchronize(unwrap()); }

int CUDAStream::priority() const {
  const CUDAGuard guard(device_);
  int value = 0;
  RUSH_CUDA_CHECK(cudaStreamGetPriority(stream_, &value));
  return value;
}

void CUDAStream::wait_event(const CUDAEvent& event) const { event.block(*this); }

}  // namespace rush::cuda
