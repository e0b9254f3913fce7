#include "core/device/context.h"

#include "core/device/generator.h"
#include "core/error/error.h"
#include "core/error/warning.h"

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

void Context::alertNotDeterministic(std::string_view caller) {
  const Context& context = globalContext();
  if (!context.deterministicAlgorithms()) return;
  const std::string text = str(caller, " does not have a deterministic implementation, but you set ",
                               "'torch.use_deterministic_algorithms(True)'. You can switch that off around this "
                               "operation, or have setDeterministicAlgorithms(true, true) warn of it alone");
  RUSH_CHECK(context.deterministicAlgorithmsWarnOnly(), text);
  RUSH_WARN(text);
}

Context& globalContext() {
  static constinit Context context;
  return context;
}

}  // namespace rush
