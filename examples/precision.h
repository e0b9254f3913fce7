// The precision that a program trains in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/amp/autocast.h"
#include "optim/amp/grad_scaler.h"

namespace examples {

/// What the option --dtype stands for: float32, or autocast to a 16-bit dtype.
class Precision {
 public:
  /// The names that the option takes.
  static std::vector<std::string> names() { return {"float32", "bfloat16", "float16"}; }

  Precision(const std::string& name, rush::Device device) : device_(device.type) {
    if (name == "bfloat16") lower_ = rush::kBFloat16;
    if (name == "float16") lower_ = rush::kFloat16;
  }

  rush::ScalarType dtype() const { return lower_.value_or(rush::kFloat32); }
  /// Until the end of a scope, operators compute in it: see Note [Autocast].
  rush::autocast::Autocast scope() const { return rush::autocast::Autocast(device_, lower_, lower_.has_value()); }
  /// A scaler of gradients: on for float16 only, and off on the meta device, where no gradient has a value.
  rush::amp::GradScaler scaler() const {
    return rush::amp::GradScaler(
        rush::amp::GradScalerOptions().enabled(lower_ == rush::kFloat16 && !rush::Device(device_).is_meta()));
  }

 private:
  rush::DeviceType device_;
  std::optional<rush::ScalarType> lower_;
};

}  // namespace examples
