// The passes of the compiler that know operators. Those that do not are in graph.h.
#pragma once
#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Replacements]
// Some operators of core/ops/nn/fused.h do what several others do, with hand-written kernels. A program need not call
// them: where a graph has the others, they are replaced.
//   - A sum, the dropout of an addend before it, its layer norm, and the cast of that which autocast makes before a
//     product: rush::add_layer_norm, whose weights are not of 16 bits, which it would cast first.
//   - The gradient of a layer norm or an RMS norm, the sum with the gradient that comes past it, the casts before and
//     after, the dropout's gradient and then that of the bias that was added before: the gradient of that operator.
//   - linear and GELU: rush::linear_gelu. GELU's gradient and the sum of its rows, the bias's: gelu_bias_backward_.
//   - A batch norm in training, a sum with what comes past it, and ReLU, where channels lie next to each other
//     (channels last): rush::native_batch_norm_relu. ReLU's gradient and the norm's: the gradient of that operator.
//   - A cross entropy over many classes and its gradient, where nothing else reads the scores and the loss is what is
//     differentiated: rush::cross_entropy_gradient_, which leaves the gradient in the scores' place.
//   - ReLU of a convolution and a max pool: the pool and then ReLU, which has a quarter of the numbers or fewer, and
//     their gradients likewise. The bits are the same: what ReLU makes 0 gets no gradient, whichever is the largest.
// The new call stands where the first of the old ones stood, or where the last did; in between, nothing may write what
// it reads, and nothing else may read what is not made any more.

/// Makes the replacements of the Note.
void replace_calls(Graph& graph);

// Note [Decompositions]
// A norm that is one kernel reads and writes what its neighbours have read and will read. Taken apart into element-wise
// operators, and sums of rows, it is a part of their loop: of batch norm with running statistics, of the sum with what
// comes past it and of ReLU nothing but the last result is written; of a layer norm or an RMS norm the sum, the result,
// and what that is cast to. So it is where a loop's numbers stay in registers, on accelerators. The CPU's loops go
// through the cache once for each kernel, and a norm of several is slower there.
// What a call consists of is written with tensors, and traced on the meta device.

/// Takes sums by an index apart into its order, which is then found once for all sums by that index, and the additions,
/// where there are several.
void find_orders_once(Graph& graph);
/// Takes calls apart whose backend can fuse all of what they consist of: see Note [Decompositions].
void decompose_calls(Graph& graph);
/// Puts what call `at` consists of in its place. False, with the call as it was, where there is no decomposition of it
/// that its backend can fuse, or where another result is read than that gives.
bool decompose(Graph& graph, size_t at);

// Note [Concatenations]
// What follows a concatenation element by element, as in rotary embeddings, can be computed of each part alone, and
// written to where that lies in the result: the concatenated tensor is never made, and of equal parts one loop makes
// all. So cat goes as far down as its readers are element-wise, with what is computed for those readers alone; what is
// computed for a part alone, and what a part is a range of, is part of that, too.

/// Computes part by part what is made of concatenated tensors: see Note [Concatenations].
void split_concatenations(Graph& graph);

// Note [Padded rows]
// Tensor cores want rows of whole 16 bytes. Where a layer has another number of outputs, such as a vocabulary of 50,257
// or 30,522, Note [Padded products] has each product make copies of what it reads and writes. In a graph one copy of
// the weight will do: its rows are made up by zeros, the result is the first columns of a wider one, whose last stay
// zeros while the loss leaves its gradient there, and the products that follow read the whole of it. So it is done
// where the readers of the result are these alone. A result that the function returns keeps its rows next to each
// other, and is copied there, unless CompileOptions::pads_outputs lets them be apart.

/// Pads products in 16 bits: see Note [Padded rows].
void pad_products(Graph& graph, bool pads_outputs);

// Note [Rematerialisation]
// A training step holds most when its forward pass is done: what the backward pass will read. Where a budget asks for
// less, a result of element-wise operators or of a norm is let go, and computed again right before its first reader of
// the backward pass, from what is held anyway, or from less. The one that frees most goes first, one at a time, until
// what is held at the fullest moment is within the budget, or nothing is left that helps there. Of a function without
// its backward pass, where that begins counts alone: what is held there is saved. PyTorch solves the same for all
// tensors at once, as a minimum cut.

// A result of an element-wise operator that a later loop reads, from which products separate it, is computed in that
// loop again where what it is made of is held anyway, such as SiLU's in a gated layer: to write and read it would take
// longer, and memory. It needs no budget, only an accelerator: a CPU's loops are not done with that quickly.

/// Has later loops compute again what they can without reading more than there is.
void compute_beside_readers(Graph& graph);
/// Has the graph's own tensors hold at most the share `budget` of what they hold at most now, or as little as there is
/// a way to: see Note [Rematerialisation]. Common calls must not be removed afterwards.
void rematerialise(Graph& graph, double budget);

// Note [Casts of lists]
// Autocast casts each parameter to 16 bits, and each of their gradients back: a hundred launches of a few microseconds.
// Casts of the same two dtypes on one device become one call, rush::foreach_to_copy. One of a tensor that nothing has
// written before, a parameter, goes to where the first of them stands; any other waits until its result is read, or its
// source is written.

/// Gathers casts into lists: see Note [Casts of lists]. It comes after fusion, which has a use for some of them.
void gather_casts(Graph& graph);

}  // namespace rush::compiler
