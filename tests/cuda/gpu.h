// What tests on a GPU share: whether there is one, tensors on it, and how its libraries and its memory are set.
#pragma once
#include "backends/cuda/devices.h"
#include "backends/cuda/memory/allocator_config.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/tensor_options.h"

namespace rush::testing {

inline const Device kGpu(kCUDA, 0);

// Says when a test has to be left out.
inline bool no_gpu() { return !cuda::is_available(); }

inline TensorOptions on_gpu(ScalarType dtype = kFloat32) { return TensorOptions(dtype).device(kCUDA); }

// Says when a test is left out of what only the caching allocator does: counting memory, keeping it, giving it out
// during a capture. With RUSH_CUDA_ALLOC_CONF=passthrough:True, as under compute-sanitizer, every block comes from the
// driver and goes back.
inline bool nothing_is_cached() { return no_gpu() || cuda::AllocatorConfig::of_process().passthrough; }

// cuDNN computes in plain float32 in this scope; the defaults afterwards.
struct FullPrecision {
  FullPrecision() { globalContext().setAllowTF32CuDNN(false); }
  ~FullPrecision() {
    globalContext().setAllowTF32CuDNN(true);
    globalContext().setUserEnabledCuDNN(true);
  }
};

}  // namespace rush::testing
