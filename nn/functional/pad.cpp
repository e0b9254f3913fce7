#include "nn/functional/pad.h"

#include "core/ops/view/pad.h"

namespace rush::nn::functional {

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  const auto* name = std::visit(
      [](auto mode) {
        using Mode = decltype(mode);
        return std::is_same_v<Mode, enumtype::kReflect>     ? "reflect"
               : std::is_same_v<Mode, enumtype::kReplicate> ? "replicate"
               : std::is_same_v<Mode, enumtype::kCircular>  ? "circular"
                                                            : "constant";
      },
      o.mode());
  const bool constant = enumtype::holds<enumtype::kConstant>(o.mode());
  return rush::pad(input, o.pad(), name, constant ? std::optional<double>(o.value()) : std::nullopt);
}

}  // namespace rush::nn::functional
