// The driver's functions that have no counterpart in the runtime, or a slower one. They are looked up at run time:
// nothing links the driver's library, so that a program with the CUDA backend starts where there is no driver.
#pragma once
#include <cuda.h>

namespace rush::cuda {

struct Driver {
  decltype(&::cuGetErrorName) get_error_name;
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuMemAddressReserve) address_reserve;
  decltype(&::cuMemCreate) mem_create;
  decltype(&::cuMemRelease) mem_release;
  decltype(&::cuMemMap) mem_map;
  decltype(&::cuMemUnmap) mem_unmap;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuMemGetAllocationGranularity) allocation_granularity;
  decltype(&::cuLaunchKernelEx) launch_kernel_ex;
  decltype(&::cuModuleLoadData) module_load_data;
  decltype(&::cuModuleGetFunction) module_get_function;
  decltype(&::cuFuncGetAttribute) func_get_attribute;
  decltype(&::cuFuncSetAttribute) func_set_attribute;
};

// Null without a driver.
const Driver* driver_or_null();
// Throws CudaError without one.
const Driver& driver();

}  // namespace rush::cuda
