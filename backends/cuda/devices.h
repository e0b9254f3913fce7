// CUDA devices, whether or not a backend for them is part of this program. torch::cuda, and what Python's torch.cuda
// has beyond it. Streams, events and memory are in backends/cuda/cuda.h.
#pragma once
#include <cstdint>

#include "backends/cuda/error.h"
#include "core/device/backend.h"
#include "core/graphs/graph.h"

namespace rush::cuda {

using rush::DeviceProperties;

// How many devices this program can use: none without the backend, without a driver or without a GPU. Never throws.
int64_t device_count();
// torch::cuda::is_available.
inline bool is_available() { return device_count() > 0; }

// All below throw NotImplementedError without the backend and CudaError without a device. `device` -1 means the current
// one; ValueError when there is no such device.

// The calling thread's device.
int64_t current_device();
void set_device(int64_t device);
// Waits until the device has done all that it was given. Throws what its kernels had to report: IndexError for an index
// out of range.
void synchronize(int64_t device = -1);
DeviceProperties get_device_properties(int64_t device = -1);
// Free and total bytes, as the driver counts them: what the caching allocator keeps is not free.
MemoryInfo mem_get_info(int64_t device = -1);

// Seed the default generator of the current device, or of all. torch::cuda::manual_seed.
void manual_seed(uint64_t seed);
void manual_seed_all(uint64_t seed);

// ---- graphs, see Note [CUDA graphs]

using CUDAGraph = graphs::Graph;
using graph = graphs::Capture;
using graphs::before_replay;
using graphs::capture_stream;
using graphs::CaptureMode;
using graphs::MempoolId_t;
using graphs::ReplayHook;
inline MempoolId_t graph_pool_handle() { return graphs::make_pool_id(); }
inline bool is_current_stream_capturing() { return graphs::is_capturing(); }

}  // namespace rush::cuda
