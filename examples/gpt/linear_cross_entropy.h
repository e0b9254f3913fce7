// The loss of a language model from what its head gets, without holding the logits.
#pragma once

#include "core/tensor.h"

namespace examples {

// Note [The loss of a large vocabulary]
// The logits of 32 sequences of 1024 tokens over 50304 classes are 3.3 GB in bfloat16, and so is their gradient: half
// of what all other activations of GPT-2 take together. The loss is a sum over rows, and its derivative by a row of
// logits is known as soon as the row is, up to the factor that the backward pass will bring. So rows are taken some
// thousands at a time: their logits, their losses and in their place their gradient, and from that their share of the
// gradients of the input and the weight, which alone are kept. No product is computed twice. As Hsu et al., "Liger
// Kernel" (2024). The gradients are those of the sum of the losses; the mean's divisor comes last, so that float16 does
// not underflow.

/// The mean over rows of cross_entropy(linear(input, weight, bias), target): (N, C), (V, C), (V) or undefined, (N) ->
/// (). `bias` is a constant. At most `max_logits` logits are held at once, but at least a row's. Under autocast the
/// products are computed in 16 bits. The loss is a float32, for
/// float64 inputs a float64. Differentiable once.
rush::Tensor linear_cross_entropy(const rush::Tensor& input, const rush::Tensor& weight, const rush::Tensor& bias,
                                  const rush::Tensor& target, int64_t max_logits = int64_t{1} << 29);

}  // namespace examples
