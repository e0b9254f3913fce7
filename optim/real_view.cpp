#include "optim/real_view.h"

#include "core/ops/view/view.h"

namespace rush::optim {

Tensor real_view(const Tensor& tensor) {
  const Tensor detached = tensor.detach();
  return detached.is_complex() ? view_as_real(detached) : detached;
}

}  // namespace rush::optim
