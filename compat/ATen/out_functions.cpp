#include "ATen/out_functions.h"

namespace rush {
inline namespace aten {

Tensor& aten_detail::written_to(Tensor& result, const Tensor& value) {
  RUSH_CHECK_TYPE(can_cast(value.scalar_type(), result.scalar_type()), "result type ", value.scalar_type(),
                  " can't be cast to the desired output type ", result.scalar_type());
  if (result.sizes() != value.sizes()) result.resize_(value.sizes());
  return result.copy_(value);
}

}  // namespace aten
}  // namespace rush
