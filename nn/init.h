// Initialisation of parameters. All write in place, are not recorded by autograd, and return their argument.
#pragma once
#include <tuple>

#include "core/tensor.h"
#include "nn/enum.h"

namespace rush::nn::init {

using NonlinearityType =
    std::variant<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D, enumtype::kConvTranspose1D,
                 enumtype::kConvTranspose2D, enumtype::kConvTranspose3D, enumtype::kSigmoid, enumtype::kTanh,
                 enumtype::kReLU, enumtype::kLeakyReLU, enumtype::kSELU>;
using FanModeType = std::variant<enumtype::kFanIn, enumtype::kFanOut>;

/// The factor by which a nonlinearity shrinks the deviation of its input; `param` is leaky ReLU's slope.
double calculate_gain(NonlinearityType nonlinearity, double param = 0.01);

/// How many inputs an output of the weight depends on, and how many outputs an input reaches: sizes 1 and 0 times the
/// receptive field. Throws ValueError below 2 dimensions.
std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

/// Uniform in [low, high), and normal with this mean and deviation.
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
/// Normal, but within [a, b]; warns if that is far from the mean. Throws ValueError if a > b, and TypeError unless the
/// numbers are floating point.
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
/// All elements `value`, 1 or 0.
Tensor constant_(Tensor tensor, const Scalar& value);
Tensor ones_(Tensor tensor);
Tensor zeros_(Tensor tensor);
/// The identity matrix. Throws ValueError unless there are 2 dimensions.
Tensor eye_(Tensor matrix);
/// A convolution that passes its input on, in as many channels as there are (by group). 3 to 5 dimensions.
Tensor dirac_(Tensor tensor, int64_t groups = 1);

/// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010):
/// deviation gain * sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
Tensor xavier_normal_(Tensor tensor, double gain = 1.0);

/// He et al., "Delving deep into rectifiers" (2015): deviation gain / sqrt(fan), with the gain of the nonlinearity that
/// follows; `a` is leaky ReLU's slope.
Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                        NonlinearityType nonlinearity = kLeakyReLU);
Tensor kaiming_normal_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                       NonlinearityType nonlinearity = kLeakyReLU);

/// Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks" (2013): a random
/// matrix with orthonormal rows or columns, whichever are fewer, times `gain`; trailing dimensions count as columns.
Tensor orthogonal_(Tensor tensor, double gain = 1.0);
/// Normal numbers of deviation `std` in a matrix, of which each column gets ceil(sparsity * rows) zeros, in random rows
/// (Martens, "Deep learning via Hessian-free optimization", 2010). torch.nn.init.sparse_. Throws ValueError unless it
/// is a matrix and `sparsity` is from 0 to 1.
Tensor sparse_(Tensor matrix, double sparsity, double std = 0.01);

}  // namespace rush::nn::init
