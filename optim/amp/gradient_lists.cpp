#include "optim/amp/gradient_lists.h"

#include "autograd/accumulate_grad.h"

namespace rush::amp {

static GradientList& list_for(std::vector<GradientList>& lists, const Tensor& grad) {
  for (GradientList& list : lists) {
    if (list.device == grad.device() && list.dtype == grad.scalar_type()) return list;
  }
  return lists.emplace_back(GradientList{grad.device(), grad.scalar_type(), {}, {}, {}});
}

std::vector<GradientList> gradient_lists(const optim::Optimizer& optimizer, native::WriteBack& copies) {
  std::vector<GradientList> lists;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const std::vector<Tensor>& params = optimizer.param_groups()[g].params();
    for (size_t i = 0; i < params.size(); ++i) {
      if (!params[i].grad().defined()) continue;
      check_gradient(params[i].grad(), params[i], "GradScaler: the gradient of parameter ", i, " of group ", g);
      const Tensor grad = gradient_values(params[i]);
      RUSH_CHECK_VALUE(grad.scalar_type() != kFloat16,
                       "GradScaler: a gradient is in float16; keep the weights in float32 and use autocast");
      RUSH_CHECK_TYPE(grad.is_floating_point(), "GradScaler: the gradient of parameter ", i, " of group ", g, " is of ",
                      grad.scalar_type(), "; only real gradients are unscaled");
      list_for(lists, grad).grads.push_back(copies.dense(grad));
    }
  }
  return lists;
}

}  // namespace rush::amp
