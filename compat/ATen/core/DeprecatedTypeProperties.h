// What x.type() and at::CPU(kFloat) give in programs that were written for old versions of libtorch.
#pragma once
#include <rushlight.h>

#include <ostream>
#include <string>

namespace c10 {
/// A kind of device and the layout of its tensors.
enum class Backend { CPU, CUDA, SparseCPU, SparseCUDA, Meta, Undefined };
}  // namespace c10

namespace rush {

/// A dtype, a type of device and a layout. Factories take it for options.
class DeprecatedTypeProperties : public TensorOptions {
 public:
  explicit DeprecatedTypeProperties(const TensorOptions& options) : TensorOptions(options) {}

  c10::Backend backend() const;
  ScalarType scalarType() const { return dtype(); }
  DeviceType device_type() const { return device().type; }
  bool is_sparse() const { return layout() == kSparse; }
  bool is_cuda() const { return device().is_cuda(); }
  const TensorOptions& options() const { return *this; }
  /// "CPUFloatType"
  std::string toString() const;
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.scalarType() == b.scalarType() && a.device_type() == b.device_type() && a.layout() == b.layout();
  }
};
inline std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& type) {
  return out << type.toString();
}

/// There is one object for each, so that references to it stay.
DeprecatedTypeProperties& type_properties(DeviceType device, ScalarType dtype, bool sparse = false);

}  // namespace rush

namespace at {
using c10::Backend;
inline rush::DeprecatedTypeProperties& CPU(rush::ScalarType dtype) { return rush::type_properties(rush::kCPU, dtype); }
inline rush::DeprecatedTypeProperties& CUDA(rush::ScalarType dtype) {
  return rush::type_properties(rush::kCUDA, dtype);
}
}  // namespace at

namespace rush {
using at::CPU;
using at::CUDA;
}  // namespace rush
