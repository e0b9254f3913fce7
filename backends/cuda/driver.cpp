#include "backends/cuda/driver.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/error.h"

namespace rush::cuda {

namespace {

// What cudart finds for a driver function of the version that our header declares.
template <class Function>
bool look_up(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &result);
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess || !found) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<Function>(found);
  return true;
}

bool load(Driver& driver) {
  return look_up("cuGetErrorName", driver.get_error_name) && look_up("cuGetErrorString", driver.get_error_string) &&
         look_up("cuMemAddressReserve", driver.address_reserve) && look_up("cuMemCreate", driver.mem_create) &&
         look_up("cuMemRelease", driver.mem_release) && look_up("cuMemMap", driver.mem_map) &&
         look_up("cuMemUnmap", driver.mem_unmap) && look_up("cuMemSetAccess", driver.set_access) &&
         look_up("cuMemGetAllocationGranularity", driver.allocation_granularity) &&
         look_up("cuLaunchKernelEx", driver.launch_kernel_ex) && look_up("cuModuleLoadData", driver.module_load_data) &&
         look_up("cuModuleGetFunction", driver.module_get_function) &&
         look_up("cuFuncGetAttribute", driver.func_get_attribute) &&
         look_up("cuFuncSetAttribute", driver.func_set_attribute);
}

}  // namespace

const Driver* driver_or_null() {
  static Driver loaded{};
  static const bool found = load(loaded);
  return found ? &loaded : nullptr;
}

const Driver& driver() {
  const Driver* found = driver_or_null();
  RUSH_CHECK_AS(CudaError, found, "CUDA: the driver (libcuda.so.1) is missing or older than this program's CUDA ",
                CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10);
  return *found;
}

}  // namespace rush::cuda
