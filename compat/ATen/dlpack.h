// The structures of DLPack, https://dmlc.github.io/dlpack/latest/c_api.html, version 0.8, under the names that its own
// header has: how a tensor is handed to another library in this process without a copy.
#pragma once
#include <cstdint>

#ifndef DLPACK_DLPACK_H_  // of another library's copy of that header
#define DLPACK_DLPACK_H_

#define DLPACK_VERSION 80

enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };
enum DLDataTypeCode { kDLInt, kDLUInt, kDLFloat, kDLOpaqueHandle, kDLBfloat, kDLComplex, kDLBool };

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;  // of vectors; 1 otherwise
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;  // in elements; no strides: row-major
  uint64_t byte_offset;      // of the first element behind `data`
};

/// Who takes it calls the deleter once, with it.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

#endif
