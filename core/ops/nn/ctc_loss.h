// Connectionist temporal classification: the loss of label sequences of which nobody knows where in the input they are.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/nn/loss.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool)>
    ctc_loss{
        "aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
        "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, int64_t, int64_t, bool)>
    ctc_loss_IntList{
        "aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
        "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        {Tag::AnyDevice}};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, int64_t, bool)>
    _ctc_loss{
        "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
        "bool zero_infinity=False) -> (Tensor, Tensor)",
        {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, const Tensor&,
                           const Tensor&, int64_t, bool)>
    _ctc_loss_backward{
        "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
        "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
        {Tag::AnyDevice}};
}  // namespace ops

/// -log of the probability of each target sequence, summed over all its alignments: repeated labels and `blank`s may
/// stand between. log_probs is (T, N, C), or (T, C) without N, of log-probabilities; targets (N, S), or all sequences
/// one after the other in one dimension, of classes except the blank. The lengths, one for each sample, say how much of
/// both counts. The mean divides each loss by its target's length first. A target that does not fit its input has an
/// infinite loss, and a gradient of NaN; `zero_infinity` makes both zero. Throws ValueError for shapes or lengths that
/// do not fit, TypeError for wrong dtypes and IndexError for a target outside [0, C). It can be differentiated once,
/// and as in PyTorch its gradient is right for log_probs that come from log_softmax. Graves et al., "Connectionist
/// temporal classification" (2006). torch.nn.functional.ctc_loss.
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank = 0, int64_t reduction = Reduction::Mean,
                       bool zero_infinity = false) {
  return ops::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
}
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                       IntArrayRef target_lengths, int64_t blank = 0, int64_t reduction = Reduction::Mean,
                       bool zero_infinity = false) {
  return ops::ctc_loss_IntList(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
}

namespace kernels {
// The sequences of a batch: sample n's labels are target_lengths[n] numbers from target_begin[n] on.
struct CtcBatch {
  IntArrayRef input_lengths, target_lengths;
  std::vector<int64_t> target_begin;
  int64_t blank = 0;

  template <class F>
  void each_tensor(const F&) {}  // it has none
};
// losses (N), log_alpha (N, T, 2 S + 1), log_probs (T, N, C); targets are int64. All are row-major.
inline constinit Kernel<void(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs,
                             const Tensor& targets, const CtcBatch&)>
    ctc_loss{"ctc_loss"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad, const Tensor& log_probs,
                             const Tensor& targets, const Tensor& losses, const Tensor& log_alpha, const CtcBatch&,
                             bool zero_infinity)>
    ctc_loss_backward{"ctc_loss_backward"};
}  // namespace kernels

}  // namespace rush
