// The driver's functions that have no counterpart in the runtime, or a slower one. They are looked up at run time:
// nothing links the driver's library, so that a program with the CUDA backend starts where there is no driver.
#pragma once
#include <cuda.h>

namespace rush::cuda {

// clang-format off
#define RUSH_FORALL_DRIVER_FUNCTIONS(X)                                                                                \
  X(cuGetErrorName, get_error_name) X(cuGetErrorString, get_error_string)                                              \
  X(cuMemAddressReserve, address_reserve) X(cuMemCreate, mem_create) X(cuMemRelease, mem_release)                      \
  X(cuMemMap, mem_map) X(cuMemUnmap, mem_unmap) X(cuMemSetAccess, set_access)                                          \
  X(cuMemGetAllocationGranularity, allocation_granularity) X(cuLaunchKernelEx, launch_kernel_ex)                       \
  X(cuModuleLoadData, module_load_data) X(cuModuleGetFunction, module_get_function)                                    \
  X(cuFuncGetAttribute, func_get_attribute) X(cuFuncSetAttribute, func_set_attribute)
// clang-format on
struct Driver {
#define RUSH_DECLARE(function, member) decltype(&::function) member;
  RUSH_FORALL_DRIVER_FUNCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE
};

// Null without a driver.
const Driver* driver_or_null();
// Throws CudaError without one.
const Driver& driver();

}  // namespace rush::cuda
