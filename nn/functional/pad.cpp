#include "nn/functional/pad.h"

#include "core/ops/view/pad.h"

namespace rush::nn::functional {

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  static constexpr const char* kNames[] = {"constant", "reflect", "replicate", "circular"};  // in mode_t's order
  const bool constant = enumtype::holds<enumtype::kConstant>(o.mode());
  return rush::pad(input, o.pad(), kNames[o.mode().index()],
                   constant ? std::optional<double>(o.value()) : std::nullopt);
}

}  // namespace rush::nn::functional
