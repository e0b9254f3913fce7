// Activations: modules without parameters (but PReLU) that apply a function of nn::functional.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/activation.h"

namespace rush::nn {

// Name, function.
#define RUSH_FORALL_PLAIN_ACTIVATIONS(X) \
  X(Sigmoid, sigmoid)                    \
  X(Tanh, tanh)                          \
  X(LogSigmoid, logsigmoid)              \
  X(Softsign, softsign)                  \
  X(Tanhshrink, tanhshrink)

// As above, with options NameOptions that have defaults.
#define RUSH_FORALL_ACTIVATIONS(X) \
  X(ReLU, relu)                    \
  X(ReLU6, relu6)                  \
  X(ELU, elu)                      \
  X(SELU, selu)                    \
  X(CELU, celu)                    \
  X(LeakyReLU, leaky_relu)         \
  X(GELU, gelu)                    \
  X(SiLU, silu)                    \
  X(Mish, mish)                    \
  X(Hardswish, hardswish)          \
  X(Hardsigmoid, hardsigmoid)      \
  X(Hardtanh, hardtanh)            \
  X(Hardshrink, hardshrink)        \
  X(Softshrink, softshrink)        \
  X(Softplus, softplus)            \
  X(GLU, glu)

// As above, with options that must be given, of which the function takes the dimension.
#define RUSH_FORALL_DIMENSION_ACTIVATIONS(X) \
  X(Softmax, softmax)                        \
  X(Softmin, softmin)                        \
  X(LogSoftmax, log_softmax)

/// torch.nn.Sigmoid and so on: forward(input) is the function of nn::functional.
#define RUSH_PLAIN_ACTIVATION(Name, function)               \
  class Name##Impl : public Cloneable<Name##Impl> {         \
   public:                                                  \
    void reset() override {}                                \
    void pretty_print(std::ostream& stream) const override; \
    Tensor forward(const Tensor& input);                    \
  };                                                        \
  RUSH_MODULE(Name);
#define RUSH_ACTIVATION(Name, function) RUSH_OPTIONS_MODULE(Name)
RUSH_FORALL_PLAIN_ACTIVATIONS(RUSH_PLAIN_ACTIVATION)
RUSH_FORALL_ACTIVATIONS(RUSH_ACTIVATION)
RUSH_FORALL_DIMENSION_ACTIVATIONS(RUSH_ACTIVATION)
RUSH_OPTIONS_MODULE(RReLU)
/// torch.nn.Threshold.
RUSH_OPTIONS_MODULE(Threshold)
/// Softmax over the channels of (N, C, H, W) or (C, H, W). torch.nn.Softmax2d.
RUSH_PLAIN_ACTIVATION(Softmax2d, softmax)
#undef RUSH_PLAIN_ACTIVATION
#undef RUSH_ACTIVATION

/// Parameter weight (num_parameters), `init` at first. He et al., "Delving deep into rectifiers" (2015).
/// torch.nn.PReLU.
class PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& options = {}) : options(options) { PReLUImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  PReLUOptions options;
  Tensor weight;
};
RUSH_MODULE(PReLU);

}  // namespace rush::nn
