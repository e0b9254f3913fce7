// Random numbers that are drawn one after the other, on the CPU: Poisson, binomial, and the slopes of rrelu. From
// libtorch's generator they are libtorch's numbers: Note [libtorch's random numbers].
#pragma once
#include "ATen/operators/view_copies.h"

namespace rush {
inline namespace aten {

/// Numbers of events where self has the mean: floating point numbers. Throws ValueError on a negative mean. Drawn on
/// the CPU for every device; there is no gradient.
Tensor poisson(const Tensor& self, const OptionalGenerator& generator = {});
/// Numbers of successes in `count` trials of probability `prob`; likewise.
Tensor binomial(const Tensor& count, const Tensor& prob, const OptionalGenerator& generator = {});

/// rrelu, whose slopes are written to `noise`: random ones where self <= 0, and 1 elsewhere. Outside of training it is
/// leaky_relu with the mean slope, and `noise` stays as it is.
Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const Scalar& lower = 0.125, const Scalar& upper = 1.0 / 3,
                        bool training = false, const OptionalGenerator& generator = {});

}  // namespace aten
}  // namespace rush
