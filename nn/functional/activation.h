#pragma once
#include "core/tensor.h"
#include "nn/options/activation.h"

namespace rush::nn::functional {

/// max(0, x)
Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
/// min(max(0, x), 6)
Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
/// x for x > 0, else alpha (e^x - 1)
Tensor elu(Tensor input, const ELUFuncOptions& options = {});
/// scale (max(0, x) + min(0, alpha (e^x - 1))) with the constants of Klambauer et al., "Self-normalizing neural
/// networks" (2017)
Tensor selu(Tensor input, const SELUFuncOptions& options = {});
/// max(0, x) + min(0, alpha (e^(x / alpha) - 1))
Tensor celu(Tensor input, const CELUFuncOptions& options = {});
/// x for x > 0, else negative_slope x
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
/// x Phi(x), Phi the normal distribution function; or its approximation by tanh
Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
/// x sigmoid(x)
Tensor silu(Tensor input, const SiLUFuncOptions& options = {});
/// x tanh(softplus(x))
Tensor mish(Tensor input, const MishFuncOptions& options = {});
/// x min(max(0, x + 3), 6) / 6
Tensor hardswish(Tensor input, const HardswishFuncOptions& options = {});
/// min(max(0, x + 3), 6) / 6
Tensor hardsigmoid(Tensor input, const HardsigmoidFuncOptions& options = {});
/// min(max(min_val, x), max_val)
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
/// log(1 + e^(beta x)) / beta; x itself where beta x > threshold
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
/// x above the threshold, `value` elsewhere
Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
/// x outside [-lambda, lambda], 0 inside
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
/// The same, moved towards 0 by lambda
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
/// x for x > 0, else weight x; one weight, or one for each channel (dimension 1)
Tensor prelu(const Tensor& input, const Tensor& weight);
/// x for x > 0, else x times a slope: while training a random one for each element, uniform between lower and upper,
/// otherwise their mean. Xu et al., "Empirical evaluation of rectified activations" (2015).
Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
/// 1 / (1 + e^-x)
Tensor sigmoid(const Tensor& input);
Tensor tanh(const Tensor& input);  // (e^x - e^-x) / (e^x + e^-x)
/// log(sigmoid(x))
Tensor logsigmoid(const Tensor& input);
/// x / (1 + |x|)
Tensor softsign(const Tensor& input);
/// x - tanh(x)
Tensor tanhshrink(const Tensor& input);
/// e^x over its sum along a dimension; computed in `dtype` if one is given
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
/// softmax(-x)
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
/// log(softmax(x))
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
/// a sigmoid(b), where a and b are the halves of the input along a dimension
Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
/// A sample of a relaxed one-hot distribution with these logits; with `hard`, one-hot, with the relaxed one's gradient.
/// Jang et al., "Categorical reparameterization with Gumbel-softmax" (2016).
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

}  // namespace rush::nn::functional
