// at::autocast: what kernels for the key Autocast ask and call.
#pragma once
#include <optional>
#include <vector>

#include "c10/core/impl/LocalDispatchKeySet.h"
#include "torch/library.h"

namespace at::autocast {

using namespace rush::autocast;

/// The old names, of CUDA's autocast and the CPU's.
inline bool is_enabled() { return is_autocast_enabled(kCUDA); }
inline void set_enabled(bool enabled) { set_autocast_enabled(kCUDA, enabled); }
inline bool is_cpu_enabled() { return is_autocast_enabled(kCPU); }
inline void set_cpu_enabled(bool enabled) { set_autocast_enabled(kCPU, enabled); }
inline ScalarType get_autocast_gpu_dtype() { return get_autocast_dtype(kCUDA); }
inline void set_autocast_gpu_dtype(ScalarType dtype) { set_autocast_dtype(kCUDA, dtype); }
inline ScalarType get_autocast_cpu_dtype() { return get_autocast_dtype(kCPU); }
inline void set_autocast_cpu_dtype(ScalarType dtype) { set_autocast_dtype(kCPU, dtype); }

/// What operators on that type of device are lowered to.
inline ScalarType get_lower_precision_fp_from_device_type(DeviceType device) { return get_autocast_dtype(device); }
inline bool is_autocast_eligible(const Tensor& tensor, DeviceType device) {
  return tensor.is_on(device) && tensor.is_floating_point();
}

/// The tensor in that dtype, if autocast of the device may cast it; other arguments as they are.
inline Tensor cached_cast(ScalarType dtype, const Tensor& tensor, DeviceType device = kCUDA) {
  return rush::autocast::cached_cast(dtype, tensor, device);
}
inline std::optional<Tensor> cached_cast(ScalarType dtype, const std::optional<Tensor>& tensor,
                                         DeviceType device = kCUDA) {
  return tensor ? std::optional(cached_cast(dtype, *tensor, device)) : std::nullopt;
}
inline std::vector<Tensor> cached_cast(ScalarType dtype, TensorList tensors, DeviceType device = kCUDA) {
  std::vector<Tensor> cast;
  for (const Tensor& tensor : tensors) cast.push_back(cached_cast(dtype, tensor, device));
  return cast;
}
template <class T>
T cached_cast(ScalarType, T argument, DeviceType = kCUDA) {
  return argument;
}

/// The wider of the dtype and that of the tensor, among the 16-bit one and float32: dtypes of what autocast may not
/// cast, float64 and that of other devices, do not count.
inline ScalarType prioritize(ScalarType current, const Tensor& tensor, DeviceType device = kCUDA) {
  return is_eligible(tensor, device) && tensor.scalar_type() == kFloat ? kFloat : current;
}
inline ScalarType promote_type(ScalarType current, DeviceType) { return current; }
/// The widest dtype of the tensors among the arguments.
template <class First, class... Rest>
ScalarType promote_type(ScalarType current, DeviceType device, const First& first, const Rest&... rest) {
  WidestDtype widest{current, device};
  widest.see(first);
  return promote_type(widest.dtype, device, rest...);
}

}  // namespace at::autocast
