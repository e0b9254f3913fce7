// One layer of a recurrent network in one direction as an operator: what the operators of recurrent.h call on the CPU.
#pragma once
#include <array>
#include <tuple>
#include <vector>

#include "core/dispatch/kernel.h"
#include "core/ops/nn/recurrent.h"

namespace rush {

// Note [A layer over all steps]
// Step by step, autograd would add to weight_hh's gradient at each step: a product of a few rows, after which a whole
// matrix is read and written. As one operator, a layer keeps h before each step and, on the way back, the gradient of
// each step's gates, so that one product over the rows of all steps gives the weight's gradient. A step itself is then
// one product by weight_hh and one element-wise kernel, either way.
//
// Packed sequences are no case of their own. The state has a row for each sequence, and a step goes over the first
// rows, those of the sequences that run: the rows of sequences that have ended, or in reverse have not begun, stay as
// they are.

namespace ops {
/// input (rows, in), the steps one after the other, batch_sizes[t] rows of step t; weights: weight_ih, weight_hh, and
/// perhaps bias_ih and bias_hh, and weight_hr; h and c (1, N, size); `mode` is a RecurrentMode. Returns h at each step,
/// (rows, output size), and h and c after the last one. `train` keeps what the gradient needs, in reserve.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, TensorList, const Tensor&, const std::optional<Tensor>&, int64_t, bool, bool, IntArrayRef)>
    recurrent_layer{
        "rush::recurrent_layer(Tensor input, Tensor[] weights, Tensor h, Tensor? c, int mode, bool reverse, bool "
        "train, SymInt[] batch_sizes) -> (Tensor output, Tensor h_n, Tensor c_n, Tensor reserve)"};
/// The gradients of input, h, c and weights that output_mask asks for; the others are undefined.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>(
    const std::optional<Tensor>&, const std::optional<Tensor>&, const std::optional<Tensor>&, const Tensor&, TensorList,
    const Tensor&, const std::optional<Tensor>&, const Tensor&, int64_t, bool, IntArrayRef, std::array<bool, 2>)>
    recurrent_layer_backward{
        "rush::recurrent_layer_backward(Tensor? grad_output, Tensor? grad_h_n, Tensor? grad_c_n, Tensor input, "
        "Tensor[] weights, Tensor h, Tensor? c, Tensor reserve, int mode, bool reverse, SymInt[] batch_sizes, bool[2] "
        "output_mask) -> (Tensor grad_input, Tensor grad_h, Tensor grad_c, Tensor[] grad_weights)"};
}  // namespace ops

namespace kernels {
// The element-wise part of a step: matrices of n rows and one dtype, whose columns have stride 1.
//   gates (n, gates * H)    what the input and, but in a GRU, h and the biases give; becomes the activated gates
//   from_hidden (n, 3 * H)  GRU only: what h gives
//   before, after (n, H)    h before the step, which a GRU alone reads, and after it, before any projection
//   c (n, H)                LSTM only: the cell state, which the step replaces
//   kept (n, H)             may be undefined: receives c before the step, or of a GRU what h gives to n
inline constinit Kernel<void(RecurrentMode mode, const Tensor& gates, const Tensor& from_hidden, const Tensor& before,
                             const Tensor& c, const Tensor& kept, const Tensor& after)>
    recurrent_step{"recurrent_layer"};
// Fills grad_gates, and of a GRU grad_from_hidden, from the gradients of `after` and c. grad_c becomes that of c before
// the step, and of a GRU grad_after that of `before`, without what goes through from_hidden.
inline constinit Kernel<void(RecurrentMode mode, const Tensor& grad_gates, const Tensor& grad_from_hidden,
                             const Tensor& grad_after, const Tensor& grad_c, const Tensor& gates, const Tensor& kept,
                             const Tensor& before)>
    recurrent_step_backward{"recurrent_layer_backward"};
}  // namespace kernels

namespace native {
// The layers that parameters are of; check_recurrent says whether all of them fit.
RecurrentLayers recurrent_layers_of(RecurrentMode mode, TensorList params, bool has_biases, int64_t num_layers,
                                    bool bidirectional);
// The first three results of recurrent_layer from operators that have derivatives, for devices without the kernels and
// for second derivatives: Note [Fused backward passes].
std::tuple<Tensor, Tensor, Tensor> recurrent_layer_by_operators(const Tensor& input, TensorList weights,
                                                                const Tensor& h, const Tensor& c, RecurrentMode mode,
                                                                bool reverse, IntArrayRef batch_sizes);
}  // namespace native

}  // namespace rush
