#include "optim/real_view.h"

#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/ops/view.h"

namespace rush::optim {

Tensor real_view(const Tensor& tensor) {
  const Tensor detached = tensor.detach();
  return detached.is_complex() ? view_as_real(detached) : detached;
}

Tensor descent_gradient(const Tensor& param, double weight_decay, bool maximize) {
  Tensor grad = real_view(param.grad().to(param.scalar_type()));
  if (maximize) grad = grad.neg();
  return weight_decay == 0 ? grad : grad.add(real_view(param), weight_decay);
}

}  // namespace rush::optim
