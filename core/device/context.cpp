#include "core/device/context.h"

#include "core/device/generator.h"
#include "core/error/error.h"

namespace rush {

void Context::setFloat32MatmulPrecision(const std::string& precision) {
  if (precision == "highest") {
    setFloat32MatmulPrecision(Float32MatmulPrecision::Highest);
  } else if (precision == "high") {
    setFloat32MatmulPrecision(Float32MatmulPrecision::High);
  } else {
    RUSH_CHECK_VALUE(precision == "medium", "setFloat32MatmulPrecision: expected highest, high or medium, got '",
                     precision, "'");
    setFloat32MatmulPrecision(Float32MatmulPrecision::Medium);
  }
}

const Generator& Context::defaultGenerator(Device device) const { return default_generator(device); }

Context& globalContext() {
  static constinit Context context;
  return context;
}

}  // namespace rush
