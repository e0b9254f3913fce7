#include "ATen/operators/out_functions.h"

namespace rush {
inline namespace aten {

Tensor& aten_detail::written_to(Tensor& result, const Tensor& value) {
  RUSH_CHECK(result.defined(), "expected a tensor to write into, got an undefined one");
  RUSH_CHECK(!GradMode::is_enabled() || !(result.requires_grad() || value.requires_grad()),
             "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
             "requires grad; call it under a NoGradGuard, or the function that returns its result");
  RUSH_CHECK_TYPE(can_cast(value.scalar_type(), result.scalar_type()), "result type ", value.scalar_type(),
                  " can't be cast to the desired output type ", result.scalar_type());
  if (result.sizes() != value.sizes()) {
    if (result.numel() > 0) {
      RUSH_WARN("An output with one or more elements was resized since it had shape ", result.sizes(),
                ", which does not match the required output shape ", value.sizes(),
                "; resize it to no elements before");
    }
    result.resize_(value.sizes());
  }
  return result.copy_(value);
}

}  // namespace aten
}  // namespace rush
