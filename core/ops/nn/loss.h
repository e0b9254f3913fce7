// Loss functions: how far an input is from a target, for each element or sample, then their mean or sum.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

// What a loss function does with the losses of its elements.
namespace Reduction {
enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2, END };
}

using OptionalTensor = std::optional<Tensor>;
using LossOp = Op<Tensor(const Tensor&, const Tensor&, int64_t)>;
using LossBackwardOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t)>;
using ScaledLossOp = Op<Tensor(const Tensor&, const Tensor&, int64_t, double)>;
using ScaledLossBackwardOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, double)>;
using ClassLossOp = Op<Tensor(const Tensor&, const Tensor&, const OptionalTensor&, int64_t, int64_t)>;
using ClassLossForwardOp =
    Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const OptionalTensor&, int64_t, int64_t)>;
using ClassLossBackwardOp =
    Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, int64_t, int64_t, const Tensor&)>;
using EmbeddingLossOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t)>;

namespace ops {
inline constinit LossOp mse_loss{"aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"};
inline constinit LossBackwardOp mse_loss_backward{
    "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor"};
inline constinit LossOp l1_loss{"aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"};
inline constinit ScaledLossOp smooth_l1_loss{
    "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor"};
inline constinit ScaledLossBackwardOp smooth_l1_loss_backward{
    "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> "
    "Tensor"};
inline constinit ScaledLossOp huber_loss{
    "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor"};
inline constinit ScaledLossBackwardOp huber_loss_backward{
    "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor"};
inline constinit LossOp soft_margin_loss{
    "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const OptionalTensor&, int64_t)> binary_cross_entropy{
    "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, int64_t)>
    binary_cross_entropy_backward{
        "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
        "reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&, int64_t)>
    binary_cross_entropy_with_logits{
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
        "pos_weight=None, int reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, bool)> kl_div{
    "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool, double, int64_t)> poisson_nll_loss{
    "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> "
    "Tensor"};

inline constinit ClassLossForwardOp nll_loss_forward{
    "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
    "output, Tensor total_weight)"};
inline constinit ClassLossForwardOp nll_loss2d_forward{
    "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
    "(Tensor output, Tensor total_weight)"};
inline constinit ClassLossBackwardOp nll_loss_backward{
    "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
    "ignore_index, Tensor total_weight) -> Tensor"};
inline constinit ClassLossBackwardOp nll_loss2d_backward{
    "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
    "ignore_index, Tensor total_weight) -> Tensor"};
inline constinit ClassLossOp nll_loss{
    "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
    "Tensor"};
inline constinit ClassLossOp nll_loss2d{
    "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
    "Tensor"};
inline constinit ClassLossOp nll_loss_nd{
    "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
    "Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const OptionalTensor&, int64_t, int64_t, double)>
    cross_entropy_loss{
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100, float label_smoothing=0.) -> Tensor"};
/// Not ATen's: cross entropy of one row a sample in one pass, see Note [Fused cross entropy].
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const OptionalTensor&, int64_t,
                                                       int64_t, double, std::optional<ScalarType>)>
    cross_entropy_forward{
        "rush::cross_entropy_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
        "float label_smoothing, *, ScalarType? dtype=None) -> (Tensor output, Tensor logsumexp, Tensor total_weight)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, int64_t, int64_t, double,
                           const Tensor&, const Tensor&)>
    cross_entropy_backward{
        "rush::cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "int ignore_index, float label_smoothing, Tensor logsumexp, Tensor total_weight) -> Tensor"};
inline constinit Op<Tensor(Tensor&, const Tensor&, int64_t, const OptionalTensor&)> cross_entropy_gradient_{
    "rush::cross_entropy_gradient_(Tensor(a!) self, Tensor target, int ignore_index=-100, Tensor? scale=None) -> "
    "Tensor"};

inline constinit EmbeddingLossOp margin_ranking_loss{
    "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
    "Tensor"};
inline constinit EmbeddingLossOp cosine_embedding_loss{
    "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
    "Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, double, int64_t)> hinge_embedding_loss{
    "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, double, double, double, bool, int64_t)>
    triplet_margin_loss{
        "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
        "eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&, const Scalar&, const OptionalTensor&, int64_t)>
    multi_margin_loss{
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
        "reduction=1) -> Tensor"};
inline constinit LossOp multilabel_margin_loss{
    "aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"};
}  // namespace ops

// The formulas stand with each function, for an element x of the input and y of the target. All throw ValueError on
// shapes that do not fit or an unknown reduction. https://pytorch.org/docs/stable/nn.functional.html#loss-functions

/// (x - y)^2
inline Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return ops::mse_loss(self, target, reduction);
}
/// |x - y|
inline Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return ops::l1_loss(self, target, reduction);
}
/// |x - y| - beta / 2, and (x - y)^2 / (2 beta) where |x - y| < beta.
inline Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean,
                             double beta = 1) {
  return ops::smooth_l1_loss(self, target, reduction, beta);
}
/// delta (|x - y| - delta / 2), and (x - y)^2 / 2 where |x - y| <= delta.
inline Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean,
                         double delta = 1) {
  return ops::huber_loss(self, target, reduction, delta);
}
/// log(1 + e^(-x y)), y being 1 or -1.
inline Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return ops::soft_margin_loss(self, target, reduction);
}
/// -w (y log x + (1 - y) log(1 - x)), logarithms not below -100; a target of (N) serves an input of (N, 1). Throws
/// ValueError when x is outside [0, 1].
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const OptionalTensor& weight = {},
                            int64_t reduction = Reduction::Mean);
/// Binary cross entropy of sigmoid(x), computed without overflow; the terms with y count `pos_weight` times.
inline Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                               const OptionalTensor& weight = {}, const OptionalTensor& pos_weight = {},
                                               int64_t reduction = Reduction::Mean) {
  return ops::binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction);
}
/// y (log y - x), or e^y (y - x) with `log_target`. x is a log-probability.
inline Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean,
                     bool log_target = false) {
  return ops::kl_div(self, target, reduction, log_target);
}
/// e^x - y x, or with `log_input` false x - y log(x + eps); `full` adds Stirling's approximation of log(y!) where y
/// > 1.
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                               int64_t reduction) {
  return ops::poisson_nll_loss(input, target, log_input, full, eps, reduction);
}

/// -w[y] x[y]: x (N, C) or (C) or (N, C, ...) holds log-probabilities, y (N), () or (N, ...) int64 classes, w (C).
/// Where y is `ignore_index` nothing is counted. The mean is weighted: the sum over the sum of w[y]. Throws IndexError
/// for a class outside [0, C).
inline Tensor nll_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight = {},
                       int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return ops::nll_loss(self, target, weight, reduction, ignore_index);
}
inline Tensor nll_loss2d(const Tensor& self, const Tensor& target, const OptionalTensor& weight = {},
                         int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return ops::nll_loss2d(self, target, weight, reduction, ignore_index);
}
inline Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const OptionalTensor& weight = {},
                          int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return ops::nll_loss_nd(self, target, weight, reduction, ignore_index);
}
/// nll_loss of log_softmax(x) over the classes. A floating-point target of x's shape holds a probability for each
/// class. With label smoothing e, a share e of each target is spread evenly over all classes.
inline Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight = {},
                                 int64_t reduction = Reduction::Mean, int64_t ignore_index = -100,
                                 double label_smoothing = 0) {
  return ops::cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing);
}
/// The sum of the cross entropies of the rows of self (N, C) with classes `target` (N), in float32 for 16-bit scores;
/// and in place, self becomes its own gradient of that sum, times `scale`, a tensor of one number on its device. For
/// losses that are differentiated as they are computed: a row is read and written once. Not differentiable. Throws as
/// cross_entropy_loss does, and ValueError where elements of self share memory.
inline Tensor cross_entropy_gradient_(Tensor& self, const Tensor& target, int64_t ignore_index = -100,
                                      const OptionalTensor& scale = {}) {
  return ops::cross_entropy_gradient_(self, target, ignore_index, scale);
}

/// max(0, -y (x1 - x2) + margin), y being 1 or -1.
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                                  int64_t reduction = Reduction::Mean) {
  return ops::margin_ranking_loss(input1, input2, target, margin, reduction);
}
/// For pairs of vectors, (N, D) or (D): 1 - cos where y is 1, max(0, cos - margin) where it is -1.
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                                    int64_t reduction = Reduction::Mean) {
  return ops::cosine_embedding_loss(input1, input2, target, margin, reduction);
}
/// x where y is 1, max(0, margin - x) where it is -1.
inline Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1,
                                   int64_t reduction = Reduction::Mean) {
  return ops::hinge_embedding_loss(self, target, margin, reduction);
}
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d being pairwise_distance; with `swap` the distance to
/// the negative is that from the positive, where it is less.
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                  int64_t reduction = Reduction::Mean) {
  return ops::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction);
}
/// For each sample of x (N, C), with class y: w[y] sum over c != y of max(0, margin - x[y] + x[c])^p / C. p is 1 or 2.
inline Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1, const Scalar& margin = 1,
                                const OptionalTensor& weight = {}, int64_t reduction = Reduction::Mean) {
  return ops::multi_margin_loss(self, target, p, margin, weight, reduction);
}
/// For each sample of x (N, C), whose classes y (N, C) lists up to the first -1: the sum over listed classes j and
/// others i of max(0, 1 - x[j] + x[i]) / C.
inline Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean) {
  return ops::multilabel_margin_loss(self, target, reduction);
}

namespace kernels {
// out = loss(x, y) and out = norm * dloss/dx * grad, over operands (out, x, y) and (out, x, y, grad).
using LossKernel = Kernel<void(TensorIterator&, double parameter)>;
using LossBackwardKernel = Kernel<void(TensorIterator&, double parameter, double norm)>;
inline constinit LossKernel mse_loss{"mse_loss"}, smooth_l1_loss{"smooth_l1_loss"}, huber_loss{"huber_loss"};
inline constinit LossKernel binary_cross_entropy{"binary_cross_entropy"};
inline constinit LossBackwardKernel mse_loss_backward{"mse_loss_backward"},
    smooth_l1_loss_backward{"smooth_l1_loss_backward"}, huber_loss_backward{"huber_loss_backward"},
    binary_cross_entropy_backward{"binary_cross_entropy_backward"};

// Scores (samples, classes, positions), row-major, with a target class for each sample and position.
struct ClassLayout {
  int64_t samples = 1, classes = 1, positions = 1;
};
// `weight` may be undefined; it has the scores' dtype, as has `total_weight`, which gets the sum of the targets'
// weights.
inline constinit Kernel<void(const Tensor& output, const Tensor& total_weight, const Tensor& scores,
                             const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index,
                             const ClassLayout&)>
    nll_loss{"nll_loss"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target,
                             const Tensor& weight, const Tensor& total_weight, int64_t reduction, int64_t ignore_index,
                             const ClassLayout&)>
    nll_loss_backward{"nll_loss_backward"};

struct CrossEntropyOptions {
  int64_t reduction = Reduction::Mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
// Scores (samples, classes), row-major, and their gradient; all else is in the dtype that is computed in, float32 for
// 16-bit scores.
inline constinit Kernel<void(const Tensor& output, const Tensor& logsumexp, const Tensor& total_weight,
                             const Tensor& scores, const Tensor& target, const Tensor& weight,
                             const CrossEntropyOptions&)>
    cross_entropy{"cross_entropy_loss"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_output, const Tensor& scores,
                             const Tensor& target, const Tensor& weight, const Tensor& logsumexp,
                             const Tensor& total_weight, const CrossEntropyOptions&)>
    cross_entropy_backward{"cross_entropy_loss_backward"};
// As above: `output` is the sum of the losses, and the scores become its gradient times `scale`, one number in the
// dtype of computation; or one, where it is undefined.
inline constinit Kernel<void(const Tensor& output, const Tensor& scores, const Tensor& target, int64_t ignore_index,
                             const Tensor& scale)>
    cross_entropy_gradient{"cross_entropy_gradient_"};
}  // namespace kernels

namespace native {
// The kernel above made of the two before it.
void cross_entropy_gradient_by_parts(const Tensor& output, const Tensor& scores, const Tensor& target,
                                     int64_t ignore_index, const Tensor& scale);
}  // namespace native

}  // namespace rush
