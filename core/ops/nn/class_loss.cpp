// Fronts of the losses of classes: negative log-likelihood, cross entropy and the multi-class margin losses.
#include "core/ops/basic.h"
#include "core/ops/factory/factories.h"
#include "core/ops/factory/range.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/loss_reduction.h"
#include "core/ops/nn/softmax.h"
#include "core/ops/register.h"
#include "core/print/bracketed.h"

namespace rush {

namespace {

using detail::check_reduction;
using kernels::ClassLayout;
using kernels::CrossEntropyOptions;

ScalarType math_type(const Tensor& t) { return t.element_size() == 2 ? kFloat32 : t.scalar_type(); }

Tensor class_indices(const char* op, const Tensor& target, const Tensor& self) {
  RUSH_CHECK_TYPE(target.scalar_type() == kInt64 || target.scalar_type() == kUInt8, op,
                  ": expected scalar type Long but found ", traits_of(target.scalar_type()).enumerator,
                  " for the target's classes; convert it with to(kInt64)");
  RUSH_CHECK_VALUE(target.device() == self.device(), op, ": the target is on ", target.device(), ", the input on ",
                   self.device());
  return native::contiguous(native::as_dtype(target, kInt64));
}

// A weight for each class in `dtype`; undefined when none is given.
Tensor class_weight(const char* op, const OptionalTensor& weight, int64_t classes, const Tensor& self,
                    ScalarType dtype) {
  if (!given(weight)) return {};
  RUSH_CHECK_VALUE(weight->sizes() == IntArrayRef(classes), op, ": expected a weight for each of ", classes,
                   " classes, got shape ", weight->sizes());
  RUSH_CHECK_VALUE(weight->device() == self.device(), op, ": the weight is on ", weight->device(), ", the input on ",
                   self.device());
  return native::contiguous(native::as_dtype(*weight, dtype));
}

void check_batch_sizes(const char* op, const Tensor& self, int64_t samples, const Tensor& target) {
  const int64_t targets = target.dim() == 0 ? 1 : target.size(0);
  RUSH_CHECK_VALUE(samples == targets, op, ": Expected input batch_size (", samples, ") to match target batch_size (",
                   targets, ") for an input of shape ", self.sizes(), " and a target of shape ", target.sizes());
}

// Of the target's sizes where each position of an input (N, C, ...) has a class: (N, ...).
void check_position_sizes(const char* op, const Tensor& self, const Tensor& target, IntArrayRef expected) {
  check_batch_sizes(op, self, self.size(0), target);
  RUSH_CHECK_VALUE(target.sizes() == expected, op, ": Expected target size ", bracketed(expected), ", got ",
                   bracketed(target.sizes()), " for an input of shape ", self.sizes());
}

// (C) or (N, C), with targets () or (N).
ClassLayout row_layout(const char* op, const Tensor& self, const Tensor& target) {
  RUSH_CHECK_VALUE(self.dim() == 1 || self.dim() == 2, op, ": expected an input of 1 or 2 dimensions, got shape ",
                   self.sizes());
  const bool one = self.dim() == 1;
  const ClassLayout layout{one ? 1 : self.size(0), self.size(-1), 1};
  const bool dims_fit = target.dim() == 1 || (one && target.dim() == 0);
  RUSH_CHECK_VALUE(dims_fit, op, one || target.dim() > 1 ? ": 0D or 1D" : ": 1D",
                   " target tensor expected, multi-target not supported, got shape ", target.sizes(),
                   " for an input of shape ", self.sizes());
  check_batch_sizes(op, self, layout.samples, target);
  return layout;
}

// (N, C, H, W) with targets (N, H, W).
ClassLayout image_layout(const char* op, const Tensor& self, const Tensor& target) {
  RUSH_CHECK_VALUE(self.dim() == 4, op, ": expected an input of 4 dimensions, got shape ", self.sizes());
  const DimVector expected{self.size(0), self.size(2), self.size(3)};
  check_position_sizes(op, self, target, expected);
  return {self.size(0), self.size(1), self.size(2) * self.size(3)};
}

using LayoutFn = ClassLayout (*)(const char* op, const Tensor& self, const Tensor& target);

void check_scores(const char* op, const Tensor& self) {
  RUSH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), op, ": not implemented for ", self.scalar_type());
}

// What a loss gets beside the scores, checked: the classes as int64 and their weights, where there are any, in `dtype`.
struct Targets {
  ClassLayout layout;
  Tensor classes, weight;
  bool each;  // a loss for each of them, not their mean or sum

  Targets(const char* op, LayoutFn layout_of, const Tensor& self, const Tensor& target, const OptionalTensor& weight,
          int64_t reduction, ScalarType dtype) {
    check_scores(op, self);
    check_reduction(op, reduction);
    layout = layout_of(op, self, target);
    classes = class_indices(op, target, self);
    this->weight = class_weight(op, weight, layout.classes, self, dtype);
    each = reduction == rush::Reduction::None && self.dim() > 1;
  }
};

}  // namespace

namespace native {

template <LayoutFn layout_of>
static std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                                   const OptionalTensor& weight, int64_t reduction,
                                                   int64_t ignore_index) {
  const char* op = "nll_loss";
  const Targets y(op, layout_of, self, target, weight, reduction, self.scalar_type());
  const Tensor out =
      detail::empty_contiguous(y.each ? target.sizes() : IntArrayRef(), self.scalar_type(), self.device());
  const Tensor total = detail::empty_contiguous({}, self.scalar_type(), self.device());
  kernels::nll_loss(self.device().type, out, total, native::contiguous(self), y.classes, y.weight, reduction,
                    ignore_index, y.layout);
  return {out, total};
}

template <LayoutFn layout_of>
static Tensor nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
                                const Tensor& total_weight) {
  const char* op = "nll_loss_backward";
  const Targets y(op, layout_of, self, target, weight, reduction, self.scalar_type());
  RUSH_CHECK_VALUE(grad.numel() == (y.each ? target.numel() : 1), op, ": grad_output has shape ", grad.sizes(),
                   ", the target ", target.sizes());
  RUSH_CHECK_VALUE(total_weight.numel() == 1, op, ": total_weight must be one number, got shape ",
                   total_weight.sizes());
  for (const Tensor* t : {&grad, &total_weight}) {
    RUSH_CHECK_TYPE(t->scalar_type() == self.scalar_type(), op, ": grad_output and total_weight must be ",
                    self.scalar_type(), " like the input, got ", t->scalar_type());
  }
  const Tensor result = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  kernels::nll_loss_backward(self.device().type, result, native::contiguous(grad), y.classes, y.weight, total_weight,
                             reduction, ignore_index, y.layout);
  return result;
}

template <ClassLossForwardOp& forward>
static Tensor nll_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
                       int64_t ignore_index) {
  return std::get<0>(forward(self, target, weight, reduction, ignore_index));
}

// Any positions: (N, C, ...) -> (N, C, 1, positions).
static Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
                          int64_t ignore_index) {
  const char* op = "nll_loss_nd";
  RUSH_CHECK_VALUE(self.dim() >= 1, op, ": expected an input of at least 1 dimension, got none");
  if (self.dim() <= 2) return ops::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return ops::nll_loss2d(self, target, weight, reduction, ignore_index);
  DimVector expected{self.size(0)};
  for (int64_t d = 2; d < self.dim(); ++d) expected.push_back(self.size(d));
  const int64_t positions = checked_numel(self.sizes().slice(2));
  check_position_sizes(op, self, target, expected);
  const Tensor out = ops::nll_loss2d(self.reshape({self.size(0), self.size(1), 1, positions}),
                                     target.reshape({self.size(0), 1, positions}), weight, reduction, ignore_index);
  return reduction == rush::Reduction::None ? out.reshape(expected) : out;
}

// Note [Fused cross entropy]
// log_softmax followed by nll_loss writes and reads the whole matrix of scores several times, and with many classes
// that is what a training step spends its time on. Where each sample has one row of scores the loss needs but the
// logarithm of the sum of exponentials of a row, which it keeps for the backward pass; that then writes the gradient in
// one go:
//   loss = sum_c a_c (lse - x_c),  dloss/dx_c = A softmax(x)_c - a_c,  A = sum_c a_c,
// where a_c = (1 - e) w_c [c = y] + e / C w_c, with label smoothing e. 16-bit scores are computed with in float32, one
// at a time: under autocast on CUDA they are therefore not cast, which would take twice the memory of the scores for
// the same result; `dtype` is how autocast asks for a float32 loss of them, as it does in softmax.
static std::tuple<Tensor, Tensor, Tensor> cross_entropy_forward(const Tensor& self, const Tensor& target,
                                                                const OptionalTensor& weight, int64_t reduction,
                                                                int64_t ignore_index, double label_smoothing,
                                                                std::optional<ScalarType> dtype) {
  const char* op = "cross_entropy_loss";
  const ScalarType math = math_type(self);
  const Targets y(op, row_layout, self, target, weight, reduction, math);
  const Tensor out = detail::empty_contiguous(y.each ? target.sizes() : IntArrayRef(), math, self.device());
  const Tensor lse = detail::empty_contiguous(y.layout.samples, math, self.device());
  const Tensor total = detail::empty_contiguous({}, math, self.device());
  kernels::cross_entropy(self.device().type, out, lse, total, native::contiguous(self), y.classes, y.weight,
                         {reduction, ignore_index, label_smoothing});
  return {native::as_dtype(out, dtype.value_or(self.scalar_type())), lse, total};
}

static Tensor cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                     const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
                                     double label_smoothing, const Tensor& logsumexp, const Tensor& total_weight) {
  const char* op = "cross_entropy_loss_backward";
  const ScalarType math = math_type(self);
  const Targets y(op, row_layout, self, target, weight, reduction, math);
  const int64_t samples = y.layout.samples;
  RUSH_CHECK_VALUE(grad.numel() == (reduction == rush::Reduction::None ? samples : 1), op, ": grad_output has shape ",
                   grad.sizes(), ", the target ", target.sizes());
  RUSH_CHECK_VALUE(logsumexp.numel() == samples && total_weight.numel() == 1, op,
                   ": logsumexp and total_weight are not those of the forward pass");
  RUSH_CHECK_TYPE(grad.is_floating_point() && logsumexp.scalar_type() == math && total_weight.scalar_type() == math, op,
                  ": wrong dtypes: grad_output ", grad.scalar_type(), ", logsumexp ", logsumexp.scalar_type(),
                  ", total_weight ", total_weight.scalar_type(), " for an input of ", self.scalar_type());
  const Tensor result = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  kernels::cross_entropy_backward(self.device().type, result, native::contiguous(native::as_dtype(grad, math)),
                                  native::contiguous(self), y.classes, y.weight, native::contiguous(logsumexp),
                                  total_weight, {reduction, ignore_index, label_smoothing});
  return result;
}

void cross_entropy_gradient_by_parts(const Tensor& output, const Tensor& given, const Tensor& target,
                                     int64_t ignore_index, const Tensor& scale) {
  const DeviceType device = given.device().type;
  const Tensor scores = contiguous(given);
  const CrossEntropyOptions sum{rush::Reduction::Sum, ignore_index, 0};
  const Tensor lse = detail::empty_contiguous(scores.size(0), output.scalar_type(), scores.device());
  const Tensor total = detail::empty_contiguous({}, output.scalar_type(), scores.device());
  const Tensor factor = scale.defined() ? scale : ones({}, output.options());
  kernels::cross_entropy(device, output, lse, total, scores, target, Tensor(), sum);
  kernels::cross_entropy_backward(device, scores, factor, scores, target, Tensor(), lse, total, sum);
  if (Tensor to = given; !scores.is_same(given)) copy_(to, scores, false);
}

static Tensor cross_entropy_gradient_(Tensor& self, const Tensor& target, int64_t ignore_index,
                                      const OptionalTensor& scale) {
  const char* op = "cross_entropy_gradient_";
  check_scores(op, self);
  RUSH_CHECK_VALUE(self.dim() == 2, op, ": expected scores of 2 dimensions, got shape ", self.sizes());
  row_layout(op, self, target);
  RUSH_CHECK_VALUE(!may_overlap(self.sizes(), self.strides()), op,
                   ": several elements of self share memory; clone it first");
  RUSH_CHECK_VALUE(!given(scale) || (scale->numel() == 1 && scale->device() == self.device()), op,
                   ": scale must be one number on ", self.device());
  const Tensor y = class_indices(op, target, self);
  const Tensor out = detail::empty_contiguous({}, math_type(self), self.device());
  const Tensor factor = given(scale) ? as_dtype(*scale, math_type(self)) : Tensor();
  kernels::cross_entropy_gradient(self.device().type, out, self, y, ignore_index, factor);
  return out;
}

// A weight for each class, shaped to multiply scores (N, C, ...) or (C).
static Tensor broadcast_weight(const OptionalTensor& weight, const Tensor& self) {
  DimVector sizes(static_cast<size_t>(self.dim()), 1);
  sizes[self.dim() == 1 ? 0 : 1] = weight->numel();
  return weight->reshape(sizes);
}

static Tensor cross_entropy_of_probabilities(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                             int64_t reduction, double label_smoothing) {
  const int64_t class_dim = self.dim() == 1 ? 0 : 1, classes = self.size(class_dim);
  RUSH_CHECK_TYPE(target.is_floating_point(), "cross_entropy_loss: probabilities must be floating point, got ",
                  target.scalar_type());
  const Tensor smooth =
      label_smoothing > 0 ? target * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes) : target;
  Tensor loss = -(log_softmax(self, class_dim) * smooth);
  if (given(weight)) loss = loss * broadcast_weight(weight, self);
  if (reduction == rush::Reduction::None) return loss.sum(class_dim);
  const Tensor total = loss.sum();
  return reduction == rush::Reduction::Sum ? total
                                           : total / (static_cast<double>(self.numel()) / static_cast<double>(classes));
}

static Tensor cross_entropy_of_classes(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                       int64_t reduction, int64_t ignore_index, double label_smoothing) {
  if (self.dim() <= 2) {
    return std::get<0>(
        ops::cross_entropy_forward(self, target, weight, reduction, ignore_index, label_smoothing, std::nullopt));
  }
  const Tensor scores = log_softmax(self, 1);
  const Tensor nll = ops::nll_loss_nd(scores, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return nll;
  const Tensor ignored = target.eq(ignore_index);
  Tensor spread = -(given(weight) ? scores * broadcast_weight(weight, self) : scores).sum(1);
  spread = spread.masked_fill(ignored, 0);
  if (reduction == rush::Reduction::Sum) spread = spread.sum();
  if (reduction == rush::Reduction::Mean) {
    const Tensor counted = given(weight)
                               ? weight->index_select(0, target.masked_fill(ignored, 0).reshape({target.numel()}))
                                     .masked_fill(ignored.reshape({target.numel()}), 0)
                                     .sum()
                               : ignored.logical_not().sum();
    spread = spread.sum() / counted;
  }
  return nll * (1 - label_smoothing) + spread * (label_smoothing / static_cast<double>(self.size(1)));
}

static Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                 int64_t reduction, int64_t ignore_index, double label_smoothing) {
  const char* op = "cross_entropy_loss";
  check_reduction(op, reduction);
  RUSH_CHECK_VALUE(label_smoothing >= 0 && label_smoothing <= 1, op, ": label_smoothing must be in [0, 1], got ",
                   label_smoothing);
  RUSH_CHECK_VALUE(self.dim() >= 1, op, ": expected an input of at least 1 dimension, got none");
  // As PyTorch decides: a target of the input's shape holds probabilities.
  if (self.sizes() == target.sizes()) {
    RUSH_CHECK_VALUE(ignore_index < 0, op, ": ignore_index has no meaning for a target of probabilities");
    return cross_entropy_of_probabilities(self, target, weight, reduction, label_smoothing);
  }
  return cross_entropy_of_classes(self, target, weight, reduction, ignore_index, label_smoothing);
}

// Scores and targets as rows: (C) -> (1, C).
static Tensor as_rows(const Tensor& t) { return t.dim() < 2 ? t.reshape({1, t.numel()}) : t; }

// Reduces a loss (N) of samples that may have been a single one without a dimension for it.
static Tensor reduce_samples(const Tensor& loss, bool single, int64_t reduction) {
  return detail::reduce_loss(single ? loss.reshape({}) : loss, reduction);
}

static Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                                const OptionalTensor& weight, int64_t reduction) {
  const char* op = "multi_margin_loss";
  check_reduction(op, reduction);
  RUSH_CHECK_VALUE(p.equal(1) || p.equal(2), op, ": p must be 1 or 2, got ", p);
  const ClassLayout layout = row_layout(op, self.dim() == 0 ? self.reshape({1}) : self, target);
  const Tensor x = as_rows(self), y = target.reshape({layout.samples, 1});
  Tensor terms = (x - x.gather(1, y) + margin).clamp_min(0);
  if (p.equal(2)) terms = terms * terms;
  if (given(weight)) terms = terms * weight->index_select(0, y.reshape({layout.samples})).reshape(y.sizes());
  // The target's own term is left out.
  const Tensor loss = terms.scatter(1, y, 0).sum(1) / static_cast<double>(layout.classes);
  return reduce_samples(loss, self.dim() < 2 && target.dim() == 0, reduction);
}

static Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  check_reduction(op, reduction);
  RUSH_CHECK_VALUE(self.dim() <= 2 && self.sizes() == target.sizes(), op,
                   ": expected an input and a target of one shape of at most 2 dimensions, got ", self.sizes(), " and ",
                   target.sizes());
  const Tensor x = as_rows(self), y = as_rows(target);
  RUSH_CHECK_VALUE(x.size(1) > 0, op, ": expected at least one class, got shape ", self.sizes());
  // A place in the list counts until the first negative one.
  const Tensor ended = y.lt(0).cumsum(1).gt(0);  // (N, places)
  const Tensor listed = y.masked_fill(ended, -1), classes = arange(0, x.size(1), y.options());
  const Tensor is_target = listed.unsqueeze(2).eq(classes).any(1);  // (N, C)
  // (N, places, C): how much class c falls short of the class listed at a place.
  const Tensor gap = (1 - x.gather(1, listed.clamp_min(0)).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0);
  const Tensor counted = gap.masked_fill(ended.unsqueeze(2).logical_or(is_target.unsqueeze(1)), 0);
  const Tensor loss = counted.sum(IntArrayRef({1, 2})) / static_cast<double>(x.size(1));
  return reduce_samples(loss, self.dim() < 2, reduction);
}

}  // namespace native

void register_class_loss_ops(Registry& r) {
  r.native(ops::nll_loss_forward, native::nll_loss_forward<row_layout>);
  r.native(ops::nll_loss2d_forward, native::nll_loss_forward<image_layout>);
  r.native(ops::nll_loss_backward, native::nll_loss_backward<row_layout>);
  r.native(ops::nll_loss2d_backward, native::nll_loss_backward<image_layout>);
  r.composite(ops::nll_loss, native::nll_loss<ops::nll_loss_forward>);
  r.composite(ops::nll_loss2d, native::nll_loss<ops::nll_loss2d_forward>);
  r.composite(ops::nll_loss_nd, native::nll_loss_nd);
  r.native(ops::cross_entropy_forward, native::cross_entropy_forward);
  r.native(ops::cross_entropy_backward, native::cross_entropy_backward);
  r.native(ops::cross_entropy_gradient_, native::cross_entropy_gradient_);
  r.composite(ops::cross_entropy_loss, native::cross_entropy_loss);
  r.composite(ops::multi_margin_loss, native::multi_margin_loss);
  r.composite(ops::multilabel_margin_loss, native::multilabel_margin_loss);
}

}  // namespace rush
