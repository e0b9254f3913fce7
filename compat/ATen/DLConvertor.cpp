#include "ATen/DLConvertor.h"

#include <memory>
#include <vector>

namespace at {

namespace {

// What a tensor that was handed out consists of: the memory's owner, and the arrays that the structure points to.
struct HandedOut {
  Tensor tensor;
  std::vector<int64_t> sizes, strides;
  DLManagedTensor managed;
};

DLDataType dlpack_type(ScalarType type) {
  const auto bits = static_cast<uint8_t>(8 * element_size(type));
  RUSH_CHECK_TYPE(type != kFloat8_e5m2 && type != kFloat8_e4m3fn, "toDLPack: DLPack has no name for ", type);
  if (type == kBFloat16) return {kDLBfloat, bits, 1};
  switch (traits_of(type).kind) {
    case DtypeKind::Bool: return {kDLBool, bits, 1};
    case DtypeKind::Float: return {kDLFloat, bits, 1};
    case DtypeKind::Complex: return {kDLComplex, bits, 1};
    default: return {static_cast<uint8_t>(traits_of(type).is_signed ? kDLInt : kDLUInt), bits, 1};
  }
}

ScalarType scalar_type(DLDataType type) {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto candidate = static_cast<ScalarType>(i);
    if (candidate == kFloat8_e5m2 || candidate == kFloat8_e4m3fn) continue;
    const DLDataType its = dlpack_type(candidate);
    if (its.code == type.code && its.bits == type.bits && type.lanes == 1) return candidate;
  }
  RUSH_THROW(TypeError, "fromDLPack: there is no dtype for code ", int{type.code}, ", ", int{type.bits}, " bits and ",
             int{type.lanes}, " lanes");
}

DLDevice dlpack_device(Device device) {
  RUSH_CHECK_TYPE(device.is_cpu() || device.is_cuda(), "toDLPack: DLPack has no name for the device ", device);
  return {device.is_cpu() ? kDLCPU : kDLCUDA, device.is_cpu() ? 0 : device.index()};
}

Device device_of(DLDevice device) {
  RUSH_CHECK_TYPE(device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLCUDA,
                  "fromDLPack: there is no device for type ", static_cast<int>(device.device_type));
  return device.device_type == kDLCUDA ? Device(kCUDA, device.device_id) : Device(kCPU);
}

}  // namespace

DLManagedTensor* toDLPack(const Tensor& tensor) {
  RUSH_CHECK_VALUE(tensor.defined() && tensor.layout() == kStrided, "toDLPack: expected a dense tensor");
  auto out = std::make_unique<HandedOut>();
  out->tensor = tensor;
  out->sizes = tensor.sizes().vec();
  out->strides = tensor.strides().vec();
  out->managed.dl_tensor = {tensor.data_ptr(),
                            dlpack_device(tensor.device()),
                            static_cast<int32_t>(tensor.dim()),
                            dlpack_type(tensor.scalar_type()),
                            out->sizes.data(),
                            out->strides.data(),
                            0};
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) { delete static_cast<HandedOut*>(self->manager_ctx); };
  return &out.release()->managed;
}

Tensor fromDLPack(DLManagedTensor* managed) {
  RUSH_CHECK_VALUE(managed, "fromDLPack: expected a tensor, got null");
  const DLTensor& of = managed->dl_tensor;
  RUSH_CHECK_VALUE(of.ndim >= 0, "fromDLPack: there are ", of.ndim, " dimensions");
  const auto dims = static_cast<size_t>(of.ndim);
  const TensorOptions options = TensorOptions(scalar_type(of.dtype)).device(device_of(of.device));
  const auto deleter = [managed](void*) {
    if (managed->deleter) managed->deleter(managed);
  };
  char* data = static_cast<char*>(of.data) + of.byte_offset;
  const IntArrayRef sizes(of.shape, dims);
  return of.strides ? from_blob(data, sizes, IntArrayRef(of.strides, dims), deleter, options)
                    : from_blob(data, sizes, deleter, options);
}

}  // namespace at
