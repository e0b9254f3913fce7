#include "backends/cuda/jit/kernel.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/launch_function.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/thread_state.h"

namespace rush::cuda::jit {

namespace {

// A kernel may ask for more dynamic shared memory than 48 KiB only after this; `most` is what a block may have.
void allow_shared_memory(CUfunction function, size_t most) {
  int of_kernel = 0;
  RUSH_CUDA_CHECK(driver().func_get_attribute(&of_kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  RUSH_CUDA_CHECK(driver().func_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                              static_cast<int>(most) - of_kernel));
}

// Whether this thread has had a context: set_device changes it from then on.
thread_local constinit bool has_context = false;

}  // namespace

struct Kernel::Loaded {
  explicit Loaded(Source kernel_source) : source(std::move(kernel_source)) {}

  CUfunction on(int device) {
    if (CUfunction function = functions[device].load(std::memory_order_acquire)) return function;
    const std::lock_guard lock(mutex);
    if (CUfunction function = functions[device].load(std::memory_order_relaxed)) return function;
    const OutsideCapture outside;
    RUSH_CUDA_CHECK(cudaSetDevice(device));  // makes its context this thread's, which the driver's functions need
    const cudaDeviceProp& gpu = properties(device);
    const std::shared_ptr<const Cubin> cubin = compiled(source, gpu.major * 10 + gpu.minor);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    RUSH_CUDA_CHECK(driver().module_load_data(&module, cubin->image.data()));
    RUSH_CUDA_CHECK(driver().module_get_function(&function, module, cubin->symbols.at(0).c_str()));
    allow_shared_memory(function, gpu.sharedMemPerBlockOptin);
    functions[device].store(function, std::memory_order_release);
    return function;
  }

  const Source source;
  std::mutex mutex;
  std::atomic<CUfunction> functions[kMaxDevices] = {};
};

Kernel::Kernel(Source source) : loaded_(std::make_shared<Loaded>(std::move(source))) {
  RUSH_CHECK_VALUE(loaded_->source.kernels.size() == 1, loaded_->source.name,
                   ": a kernel's source names one kernel, got ", loaded_->source.kernels.size());
}

void Kernel::load() const { static_cast<void>(loaded_->on(thread_state.device)); }

void Kernel::launch(const char* op, const Shape& shape, void** parameters) const {
  const auto extent = [](const Extent& e) { return dim3(e.x, e.y, e.z); };
  const CUfunction function = loaded_->on(thread_state.device);
  if (RUSH_UNLIKELY(!has_context)) {
    const OutsideCapture outside;
    RUSH_CUDA_CHECK(cudaSetDevice(thread_state.device));
    has_context = true;
  }
  launch_function(op, function, {extent(shape.grid), extent(shape.block), shape.shared}, current_stream(), parameters);
}

}  // namespace rush::cuda::jit
