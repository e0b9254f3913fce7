#include "nn/modules/linear.h"

#include <cmath>

#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/functional/linear.h"
#include "nn/init.h"
#include "nn/module_text.h"
#include "nn/modules/default_init.h"

namespace rush::nn {

LinearImpl::LinearImpl(const LinearOptions& options) : options(options) { LinearImpl::reset(); }

void LinearImpl::reset() {
  RUSH_CHECK_VALUE(options.in_features() >= 0 && options.out_features() >= 0, "Linear: cannot map ",
                   options.in_features(), " features to ", options.out_features());
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? empty(options.out_features()) : Tensor(), options.bias());
  reset_parameters();
}

void LinearImpl::reset_parameters() { detail::reset_weight_and_bias(weight, bias); }

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("Linear(in_features=", options.in_features(), ", out_features=", options.out_features(),
                                ", bias=", options.bias(), ")");
}

Tensor LinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return functional::linear(input, weight, bias);
}

BilinearImpl::BilinearImpl(const BilinearOptions& options) : options(options) { BilinearImpl::reset(); }

void BilinearImpl::reset() {
  weight =
      register_parameter("weight", empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? empty(options.out_features()) : Tensor(), options.bias());
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("Bilinear(in1_features=", options.in1_features(),
                                ", in2_features=", options.in2_features(), ", out_features=", options.out_features(),
                                ", bias=", options.bias(), ")");
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  const ModuleScope scope(*this);
  return functional::bilinear(input1, input2, weight, bias);
}

void IdentityImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("Identity()"); }

void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("Flatten(start_dim=", options.start_dim(), ", end_dim=", options.end_dim(), ")");
}

Tensor FlattenImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return input.flatten(options.start_dim(), options.end_dim());
}

void UnflattenImpl::pretty_print(std::ostream& stream) const {
  std::string sizes = str(options.sizes());
  sizes.front() = '{';
  sizes.back() = '}';
  stream << detail::module_text("Unflatten(dim=", options.dim(), ", unflattened_size=", sizes, ")");
}

Tensor UnflattenImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return input.unflatten(options.dim(), options.sizes());
}

}  // namespace rush::nn
