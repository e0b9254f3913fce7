#include "backends/cuda/launch_kernel.h"

#include <cstdint>
#include <string>

#include "backends/cuda/check.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/launch_function.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/thread_state.h"
#include "core/str.h"

namespace rush::cuda {

namespace {

// A kernel as the compiler knows it, and as the driver does on one device.
struct KnownKernel {
  const void* kernel;
  CUfunction function;
  int device;
};
constexpr int kKnownBits = 8;
thread_local constinit KnownKernel known_kernels[1 << kKnownBits] = {};

[[noreturn]] RUSH_COLD void refuse(cudaError_t status, const char* op, const LaunchShape& shape) {
  const auto text = [](const dim3& d) { return str(d.x, " x ", d.y, " x ", d.z); };
  const std::string call = str("the launch of ", op, " (grid ", text(shape.grid), ", block ", text(shape.block), ", ",
                               shape.shared, " bytes of shared memory)");
  throw_error(status, call.c_str());
}

RUSH_COLD void look_up(KnownKernel& known, const void* kernel, const char* op, const LaunchShape& shape) {
  known.kernel = nullptr;
  // The kernel may have to be loaded. That its device's context becomes this thread's is needed by the driver, too.
  const OutsideCapture outside;
  const cudaError_t status = cudaGetFuncBySymbol(&known.function, kernel);
  if (status != cudaSuccess) refuse(status, op, shape);
  known.device = thread_state.device;
  known.kernel = kernel;
}

}  // namespace

void launch_function(const char* op, CUfunction function, const LaunchShape& shape, cudaStream_t stream,
                     void** arguments) {
  static const auto launch = driver().launch_kernel_ex;
  CUlaunchConfig config{};
  config.gridDimX = shape.grid.x;
  config.gridDimY = shape.grid.y;
  config.gridDimZ = shape.grid.z;
  config.blockDimX = shape.block.x;
  config.blockDimY = shape.block.y;
  config.blockDimZ = shape.block.z;
  config.sharedMemBytes = static_cast<unsigned>(shape.shared);
  config.hStream = stream;
  const CUresult status = launch(&config, function, arguments, nullptr);
  // The runtime has the driver's numbers for what both can return.
  if (RUSH_UNLIKELY(status != CUDA_SUCCESS)) refuse(static_cast<cudaError_t>(status), op, shape);
}

void detail::launch_kernel(const char* op, const void* kernel, const LaunchShape& shape, cudaStream_t stream,
                           void** arguments) {
  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  const uint64_t key = reinterpret_cast<uintptr_t>(kernel) + static_cast<uint64_t>(thread_state.device);
  KnownKernel& known = known_kernels[key * uint64_t{0x9E3779B97F4A7C15} >> (64 - kKnownBits)];
  if (RUSH_UNLIKELY(known.kernel != kernel || known.device != thread_state.device)) look_up(known, kernel, op, shape);
  launch_function(op, known.function, shape, stream, arguments);
}

}  // namespace rush::cuda
