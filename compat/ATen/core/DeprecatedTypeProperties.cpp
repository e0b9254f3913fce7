#include "ATen/core/DeprecatedTypeProperties.h"

#include <map>
#include <mutex>
#include <tuple>

namespace rush {

c10::Backend DeprecatedTypeProperties::backend() const {
  switch (device_type()) {
    case kCPU: return is_sparse() ? c10::Backend::SparseCPU : c10::Backend::CPU;
    case kCUDA: return is_sparse() ? c10::Backend::SparseCUDA : c10::Backend::CUDA;
    case kMeta: return c10::Backend::Meta;
    default: return c10::Backend::Undefined;
  }
}

std::string DeprecatedTypeProperties::toString() const {
  return str(is_sparse() ? "Sparse" : "", upper_case(device_type_name(device_type())),
             traits_of(scalarType()).enumerator, "Type");
}

DeprecatedTypeProperties& type_properties(DeviceType device, ScalarType dtype, bool sparse) {
  static std::mutex mutex;
  static std::map<std::tuple<DeviceType, ScalarType, bool>, DeprecatedTypeProperties> all;
  const std::lock_guard<std::mutex> lock(mutex);
  const TensorOptions options = TensorOptions(dtype).device(device).layout(sparse ? kSparse : kStrided);
  return all.try_emplace({device, dtype, sparse}, options).first->second;
}

}  // namespace rush
