// What a thread has chosen: its device, and a stream on each.
#pragma once
#include <cuda_runtime_api.h>

namespace rush::cuda {

inline constexpr int kMaxDevices = 64;

// The runtime keeps the current device too, and asking it costs more than this. It is changed only through
// rush::cuda::set_device, never by calling cudaSetDevice.
struct ThreadState {
  int device = 0;                          // where every thread starts
  cudaStream_t streams[kMaxDevices] = {};  // null: the default stream
};
inline thread_local constinit ThreadState thread_state;

}  // namespace rush::cuda
