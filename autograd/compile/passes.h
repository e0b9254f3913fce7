// The passes of the compiler that know operators. Those that do not are in graph.h.
#pragma once
#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Replacements]
// Some operators of core/ops/nn/fused.h do what several others do, with hand-written kernels. A program need not call
// them: where a graph has the others, they are replaced.
//   - A sum, its layer norm, and the cast of that which autocast makes before a product: rush::add_layer_norm.
//   - The gradient of a layer norm, the sum with the gradient that comes past it, and the cast before: the gradient of
//     that operator.
//   - linear and GELU: rush::linear_gelu. GELU's gradient and the sum of its rows, the bias's: gelu_bias_backward_.
// The new call stands where the first of the old ones stood, or where the last did; in between, nothing may write what
// it reads, and nothing else may read what is not made any more.

/// Makes the replacements of the Note.
void replace_calls(Graph& graph);

// Note [Casts of lists]
// Autocast casts each parameter to 16 bits, and each of their gradients back: a hundred launches of a few microseconds.
// Casts of the same two dtypes on one device become one call, rush::foreach_to_copy. One of a tensor that nothing has
// written before, a parameter, goes to where the first of them stands; any other waits until its result is read, or its
// source is written.

/// Gathers casts into lists: see Note [Casts of lists]. It comes after fusion, which has a use for some of them.
void gather_casts(Graph& graph);

}  // namespace rush::compiler
