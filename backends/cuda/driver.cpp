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
#define RUSH_AND_LOOK_UP(function, member) &&look_up(#function, driver.member)
  return true RUSH_FORALL_DRIVER_FUNCTIONS(RUSH_AND_LOOK_UP);
#undef RUSH_AND_LOOK_UP
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
