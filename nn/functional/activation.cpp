#include "nn/functional/activation.h"

#include "core/device/generator.h"
#include "core/ops/basic.h"
#include "core/ops/pointwise/activation.h"

namespace rush::nn::functional {

Tensor relu(Tensor input, const ReLUFuncOptions& o) { return o.inplace() ? rush::relu_(input) : rush::relu(input); }
Tensor relu6(Tensor input, const ReLU6FuncOptions& o) {
  return o.inplace() ? rush::hardtanh_(input, 0, 6) : rush::hardtanh(input, 0, 6);
}
Tensor elu(Tensor input, const ELUFuncOptions& o) {
  return o.inplace() ? rush::elu_(input, o.alpha()) : rush::elu(input, o.alpha());
}
Tensor selu(Tensor input, const SELUFuncOptions& o) { return o.inplace() ? rush::selu_(input) : rush::selu(input); }
Tensor celu(Tensor input, const CELUFuncOptions& o) {
  return o.inplace() ? rush::celu_(input, o.alpha()) : rush::celu(input, o.alpha());
}
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& o) {
  return o.inplace() ? rush::leaky_relu_(input, o.negative_slope()) : rush::leaky_relu(input, o.negative_slope());
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& o) { return rush::gelu(input, o.approximate()); }
Tensor silu(Tensor input, const SiLUFuncOptions& o) { return o.inplace() ? rush::silu_(input) : rush::silu(input); }
Tensor mish(Tensor input, const MishFuncOptions& o) { return o.inplace() ? rush::mish_(input) : rush::mish(input); }
Tensor hardswish(Tensor input, const HardswishFuncOptions& o) {
  return o.inplace() ? rush::hardswish_(input) : rush::hardswish(input);
}
Tensor hardsigmoid(Tensor input, const HardsigmoidFuncOptions& o) {
  return o.inplace() ? rush::hardsigmoid_(input) : rush::hardsigmoid(input);
}
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& o) {
  return o.inplace() ? rush::hardtanh_(input, o.min_val(), o.max_val())
                     : rush::hardtanh(input, o.min_val(), o.max_val());
}
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& o) {
  return rush::softplus(input, o.beta(), o.threshold());
}
Tensor threshold(Tensor input, const ThresholdFuncOptions& o) {
  return o.inplace() ? rush::threshold_(input, o.threshold(), o.value())
                     : rush::threshold(input, o.threshold(), o.value());
}
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& o) { return rush::hardshrink(input, o.lambda()); }
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& o) { return rush::softshrink(input, o.lambda()); }
Tensor prelu(const Tensor& input, const Tensor& weight) { return rush::prelu(input, weight); }
// 1, and where the input is not positive a number between lower and upper.
static Tensor rrelu_slopes(const Tensor& input, const RReLUFuncOptions& o) {
  if (input.is_cpu() && default_generator().mt19937()) {  // libtorch draws for those numbers only, in float64
    const Tensor chosen = input.le(0);
    const Tensor drawn = empty({chosen.sum().item<int64_t>()}, kFloat64).uniform_(o.lower(), o.upper());
    return ones_like(input).masked_scatter(chosen, drawn.to(input.scalar_type()));
  }
  const Tensor drawn = empty(input.sizes(), input.options()).uniform_(o.lower(), o.upper());
  return where(input.gt(0), 1.0, drawn).to(input.scalar_type());
}
Tensor rrelu(Tensor input, const RReLUFuncOptions& o) {
  RUSH_CHECK_VALUE(o.lower() <= o.upper(), "rrelu: lower is ", o.lower(), ", more than upper, ", o.upper());
  if (!o.training()) {
    const double mean = (o.lower() + o.upper()) / 2;
    return o.inplace() ? rush::leaky_relu_(input, mean) : rush::leaky_relu(input, mean);
  }
  const Tensor slopes = rrelu_slopes(input, o);
  return o.inplace() ? input.mul_(slopes) : input * slopes;
}
Tensor sigmoid(const Tensor& input) { return rush::sigmoid(input); }
Tensor tanh(const Tensor& input) { return rush::tanh(input); }
Tensor logsigmoid(const Tensor& input) { return rush::log_sigmoid(input); }
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return input.softmax(o.dim(), o.dtype()); }
Tensor softmin(const Tensor& input, const SoftminFuncOptions& o) { return (-input).softmax(o.dim(), o.dtype()); }
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& o) {
  return input.log_softmax(o.dim(), o.dtype());
}
Tensor glu(const Tensor& input, const GLUFuncOptions& o) { return rush::glu(input, o.dim()); }

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  const Tensor gumbels = -empty(logits.sizes(), logits.options()).exponential_().log();
  const Tensor soft = ((logits + gumbels) / o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  const Tensor index = soft.argmax(o.dim(), /*keepdim=*/true);
  const Tensor hot = zeros(logits.sizes(), logits.options()).scatter(o.dim(), index, 1.0);
  return hot - soft.detach() + soft;
}

}  // namespace rush::nn::functional
