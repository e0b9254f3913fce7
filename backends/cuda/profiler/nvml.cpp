// NVML's instruments. The driver brings the library, which is looked up at run time; its functions are declared here,
// because not every toolkit has the header (https://docs.nvidia.com/deploy/nvml-api).
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "backends/cuda/profiler/activity_sources.h"

namespace rush::cuda {

namespace {

using Handle = struct NvmlDevice*;
struct Utilization {
  unsigned gpu = 0,
           memory = 0;  // percent of the last moments in which a kernel ran, in which memory was read or written
};
constexpr int kSuccess = 0, kGpuTemperature = 0;

struct Nvml {
  int (*init)() = nullptr;
  int (*by_bus)(const char* bus_id, Handle* device) = nullptr;
  int (*utilization)(Handle device, Utilization* utilization) = nullptr;
  int (*power)(Handle device, unsigned* milliwatts) = nullptr;
  int (*temperature)(Handle device, int sensor, unsigned* celsius) = nullptr;

  bool load() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    const auto find = [library](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find("nvmlInit_v2", init) && find("nvmlDeviceGetHandleByPciBusId_v2", by_bus) &&
           find("nvmlDeviceGetUtilizationRates", utilization) && find("nvmlDeviceGetPowerUsage", power) &&
           find("nvmlDeviceGetTemperature", temperature) && init() == kSuccess;
  }
};

}  // namespace

std::vector<profiler::Counter> nvml_counters(int device) {
  static Nvml nvml;
  static const bool is_loaded = nvml.load();
  char bus_id[32];
  Handle handle = nullptr;
  // CUDA numbers devices in another order than NVML.
  if (!is_loaded || cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device) != cudaSuccess ||
      nvml.by_bus(bus_id, &handle) != kSuccess) {
    return {};
  }
  std::vector<profiler::Counter> counters;
  Utilization utilization;
  unsigned milliwatts = 0, celsius = 0;
  if (nvml.utilization(handle, &utilization) == kSuccess) {
    counters.push_back({"utilization (%)", static_cast<double>(utilization.gpu)});
  }
  if (nvml.power(handle, &milliwatts) == kSuccess) counters.push_back({"power (W)", milliwatts * 1e-3});
  if (nvml.temperature(handle, kGpuTemperature, &celsius) == kSuccess) {
    counters.push_back({"temperature (C)", static_cast<double>(celsius)});
  }
  return counters;
}

}  // namespace rush::cuda
