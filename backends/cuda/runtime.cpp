// The CUDA runtime behind core's Backend: devices, streams and events. Memory is in memory/, graphs are in graphs/.
#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "backends/cuda/check.h"
#include "backends/cuda/device_assert.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/generator.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/graphs/graph.h"
#include "backends/cuda/jit/functor_text.h"
#include "backends/cuda/jit/fused_loop.h"
#include "backends/cuda/memory/caching_allocator.h"
#include "backends/cuda/memory/pinned_allocator.h"
#include "backends/cuda/profiler/activity_sources.h"
#include "backends/cuda/register.h"
#include "backends/cuda/stream/stream.h"
#include "backends/cuda/stream/stream_order.h"
#include "backends/cuda/thread_state.h"
#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factories.h"
#include "core/ops/linalg/matmul.h"

namespace rush::cuda {

namespace {

cudaStream_t handle(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle); }

// The driver's answer when the process began to use CUDA; it does not change afterwards.
struct Devices {
  cudaError_t status;
  int count = 0;
  Devices() {
    status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
      cudaGetLastError();
      count = 0;
    }
    if (count > kMaxDevices) count = kMaxDevices;
    const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    wait_for_each_call = blocking && std::string_view(blocking) == "1";
    if (count > 1 || wait_for_each_call) devices_to_check |= kCUDA;  // Note [The device of a call]
  }
};
const Devices& devices() {
  static const Devices found;
  return found;
}

// Whether an error only says that the process is ending: the driver goes before our static variables do.
bool is_unloading(cudaError_t status) { return status == cudaErrorCudartUnloading; }

class CudaBackend final : public Backend {
 public:
  int device_count() noexcept override { return devices().count; }

  void require_device() override {
    if (RUSH_LIKELY(devices().count > 0)) return;
    if (devices().status == cudaErrorInsufficientDriver) {
      int driver = 0;
      cudaDriverGetVersion(&driver);
      RUSH_CHECK_AS(CudaError, driver > 0, "CUDA: there is no NVIDIA driver on this machine (libcuda.so.1)");
      RUSH_THROW(CudaError, "CUDA: the driver supports CUDA up to ", driver / 1000, ".", driver % 1000 / 10,
                 ", this program was built with ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10);
    }
    RUSH_CHECK_AS(CudaError, devices().status == cudaSuccess || devices().status == cudaErrorNoDevice,
                  "CUDA: no device can be used: ", cudaGetErrorName(devices().status), " (",
                  cudaGetErrorString(devices().status), ")");
    RUSH_THROW(CudaError, "CUDA: there is no GPU on this machine, or CUDA_VISIBLE_DEVICES hides it");
  }

  int current_device() override { return thread_state.device; }
  void set_device(int device) override {
    if (device == thread_state.device) return;
    const cudaError_t status = cudaSetDevice(device);
    if (status != cudaSuccess && !is_unloading(status)) throw_error(status, "cudaSetDevice(device)");
    thread_state.device = device;
  }

  void synchronize(int device) override {
    check_not_capturing("waiting for the GPU");
    if (device < 0) device = current_device();
    const DeviceGuard guard(Device(kCUDA, device));
    RUSH_CUDA_CHECK(wait_for_device());
    if (RUSH_UNLIKELY(stream_order)) stream_order->host_waited_for_device(device);
    throw_device_errors(device);
  }

  // The context, and cuBLAS, which loads its kernels when it first multiplies.
  void start(int device) override {
    const DeviceGuard guard(Device(kCUDA, device));
    const Tensor x = zeros({8, 8}, TensorOptions(kBFloat16).device(Device(kCUDA, device)));
    mm(x, x);
  }

  DeviceProperties properties(int device) override {
    const cudaDeviceProp& all = cuda::properties(device);
    DeviceProperties properties;
    properties.name = all.name;
    properties.major = all.major;
    properties.minor = all.minor;
    properties.total_memory = all.totalGlobalMem;
    properties.multi_processor_count = all.multiProcessorCount;
    properties.max_threads_per_multi_processor = all.maxThreadsPerMultiProcessor;
    properties.warp_size = all.warpSize;
    properties.shared_memory_per_block = all.sharedMemPerBlockOptin;
    properties.l2_cache_size = static_cast<size_t>(all.l2CacheSize);
    return properties;
  }

  MemoryInfo memory_info(int device) override {
    const DeviceGuard guard(Device(kCUDA, device));
    MemoryInfo info;
    RUSH_CUDA_CHECK(cudaMemGetInfo(&info.free, &info.total));
    return info;
  }

  Stream current_stream(int device) override { return {Device(kCUDA, device), thread_state.streams[device]}; }
  void set_current_stream(const Stream& stream) override { thread_state.streams[stream.device.index] = handle(stream); }
  Stream stream_from_pool(int device) override { return getStreamFromPool(false, device).unwrap(); }
  void synchronize(const Stream& stream) override {
    check_not_capturing("waiting for a stream");
    const DeviceGuard guard(stream.device);
    RUSH_CUDA_CHECK(cudaStreamSynchronize(handle(stream)));
    if (RUSH_UNLIKELY(stream_order)) stream_order->host_waited(stream);
    throw_device_errors(stream.device.index);
  }
  bool query(const Stream& stream) override {
    check_not_capturing("asking whether a stream is done");
    const DeviceGuard guard(stream.device);
    const bool done = is_done(cudaStreamQuery(handle(stream)), "cudaStreamQuery(stream)");
    if (RUSH_UNLIKELY(stream_order) && done) stream_order->host_waited(stream);
    return done;
  }

  void* create_event(int device, bool timing) override {
    const DeviceGuard guard(Device(kCUDA, device));
    cudaEvent_t event = nullptr;
    RUSH_CUDA_CHECK(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming));
    return event;
  }
  void destroy_event(void* event, int /*device*/) noexcept override {
    if (cudaEventDestroy(static_cast<cudaEvent_t>(event)) != cudaSuccess) cudaGetLastError();
    if (RUSH_UNLIKELY(current_capture != nullptr)) current_capture->destroyed(event);
    if (RUSH_UNLIKELY(stream_order)) stream_order->destroyed(event);
  }
  void record(void* event, const Stream& stream) override {
    const DeviceGuard guard(stream.device);
    RUSH_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(event), handle(stream)));
    if (RUSH_UNLIKELY(current_capture != nullptr)) current_capture->recorded(event, handle(stream));
    if (RUSH_UNLIKELY(stream_order)) stream_order->recorded(event, stream);
  }
  void wait(const Stream& stream, void* event) override {
    const DeviceGuard guard(stream.device);
    if (RUSH_UNLIKELY(current_capture != nullptr)) check_can_wait(handle(stream), event);
    RUSH_CUDA_CHECK(cudaStreamWaitEvent(handle(stream), static_cast<cudaEvent_t>(event), 0));
    if (RUSH_UNLIKELY(stream_order)) stream_order->waited(stream, event);
  }
  bool query_event(void* event) override {
    check_not_capturing("asking whether an event was reached");
    const bool done = is_done(cudaEventQuery(static_cast<cudaEvent_t>(event)), "cudaEventQuery(event)");
    if (RUSH_UNLIKELY(stream_order) && done) stream_order->host_waited(event);
    return done;
  }
  void synchronize_event(void* event) override {
    check_not_capturing("waiting for an event");
    RUSH_CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
    if (RUSH_UNLIKELY(stream_order)) stream_order->host_waited(event);
  }
  double elapsed_milliseconds(void* start, void* end) override {
    float milliseconds = 0;
    RUSH_CUDA_CHECK(
        cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start), static_cast<cudaEvent_t>(end)));
    return static_cast<double>(milliseconds);
  }

  void record_stream(const StorageImpl& storage, const Stream& stream) override {
    if (storage.data()) record_block_stream(storage, stream);
  }
  Allocator& allocator() override { return caching_allocator(); }
  Allocator* pinned_allocator() override { return &cuda::pinned_allocator(); }
  bool is_pinned(const void* data) override { return cuda::is_pinned(data); }

  Generator make_generator(Device device, uint64_t seed) override {
    return rush::make_generator<CUDAGeneratorImpl>(device, seed);
  }
  bool can_fuse(const IteratorCall& call, ArrayRef<ScalarType> dtypes) override {
    return jit::functor_text(call, dtypes).has_value();
  }
  std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) override {
    return jit::fuse(std::move(description));
  }
  graphs::GraphRuntime* graph_runtime() override { return &cuda::graph_runtime(); }
  profiler::ActivitySource* activity_source() override { return &cuda::activity_source(); }

 private:
  // What is captured can wait for nothing outside, and the default stream for nothing that is captured.
  static void check_can_wait(cudaStream_t stream, void* event) {
    const bool captured_event = current_capture->has_event(event);
    if (captured_event && !stream) throw_cannot_be_captured("waiting on the default stream");
    if (!captured_event && current_capture->takes_part(stream))
      throw_cannot_be_captured("waiting for an event from outside of the graph");
  }

  static bool is_done(cudaError_t status, const char* call) {
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    if (status != cudaSuccess) throw_error(status, call);
    return true;
  }
};

}  // namespace

const cudaDeviceProp& properties(int device) {
  struct Slot {
    std::once_flag asked;
    cudaDeviceProp properties;
  };
  static std::array<Slot, kMaxDevices>& slots = *new std::array<Slot, kMaxDevices>;
  RUSH_CHECK_VALUE(device >= 0 && device < devices().count, "CUDA: there is no device ", device, ", there are ",
                   devices().count);
  Slot& slot = slots[static_cast<size_t>(device)];
  std::call_once(slot.asked, [&] { RUSH_CUDA_CHECK(cudaGetDeviceProperties(&slot.properties, device)); });
  return slot.properties;
}

const cudaDeviceProp& current_properties() { return properties(thread_state.device); }

void register_runtime() {
  // Never destroyed: tensors in static variables are freed after everything else.
  static auto& backend = *new CudaBackend;
  watch_streams_if_asked();
  register_backend(kCUDA, backend);
}

}  // namespace rush::cuda
