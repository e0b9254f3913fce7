#include "core/ops/nn/ctc_loss.h"

#include <algorithm>
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/factory/tensor_data.h"
#include "core/ops/nn/loss_reduction.h"
#include "core/ops/register.h"
#include "core/ops/view/read_integers.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace {

constexpr const char* kOp = "ctc_loss";

void check_lengths(const char* name, IntArrayRef lengths, int64_t samples, int64_t limit) {
  RUSH_CHECK_VALUE(static_cast<int64_t>(lengths.size()) == samples, kOp, ": expected ", name, " for ", samples,
                   " samples, got ", lengths.size());
  for (const int64_t length : lengths) {
    RUSH_CHECK_VALUE(length >= 0 && length <= limit, kOp, ": ", name, " must be between 0 and ", limit, ", got ",
                     length);
  }
}

// Where each sample's labels begin; throws unless all arguments fit each other.
kernels::CtcBatch checked_batch(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                IntArrayRef target_lengths, int64_t blank) {
  RUSH_CHECK_VALUE(log_probs.dim() == 3 && log_probs.size(2) > 0, kOp,
                   ": expected log_probs of shape (T, N, C), got shape ", log_probs.sizes());
  RUSH_CHECK_TYPE(log_probs.scalar_type() == kFloat32 || log_probs.scalar_type() == kFloat64, kOp,
                  ": expected log_probs of float32 or float64, got ", log_probs.scalar_type());
  RUSH_CHECK_TYPE(targets.scalar_type() == kInt64 || targets.scalar_type() == kInt32, kOp,
                  ": expected targets of int64 or int32, got ", targets.scalar_type());
  RUSH_CHECK_VALUE(targets.device() == log_probs.device(), kOp, ": the targets are on ", targets.device(),
                   ", log_probs on ", log_probs.device());
  RUSH_CHECK_VALUE(blank >= 0 && blank < log_probs.size(2), kOp, ": the blank must be one of ", log_probs.size(2),
                   " classes, got ", blank);
  RUSH_CHECK_VALUE(targets.dim() == 1 || targets.dim() == 2, kOp, ": expected targets of 1 or 2 dimensions, got shape ",
                   targets.sizes());
  const int64_t samples = log_probs.size(1);
  const bool padded = targets.dim() == 2;
  RUSH_CHECK_VALUE(!padded || targets.size(0) == samples, kOp, ": targets of shape ", targets.sizes(),
                   " do not go with log_probs of shape ", log_probs.sizes());
  check_lengths("input_lengths", input_lengths, samples, log_probs.size(0));
  check_lengths("target_lengths", target_lengths, samples, targets.size(-1));

  kernels::CtcBatch batch{input_lengths, target_lengths, {}, blank};
  int64_t total = 0;
  for (int64_t n = 0; n < samples; ++n) {
    batch.target_begin.push_back(padded ? n * targets.size(1) : total);
    total = add_sizes(kOp, total, target_lengths[static_cast<size_t>(n)]);
  }
  RUSH_CHECK_VALUE(padded || total == targets.size(0), kOp, ": target_lengths add up to ", total, ", but there are ",
                   targets.size(0), " targets");
  return batch;
}

Tensor labels(const Tensor& targets) {
  return native::contiguous(targets.scalar_type() == kInt64 ? targets : native::to_dtype(targets, kInt64));
}

}  // namespace

namespace native {

static std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                            IntArrayRef target_lengths, int64_t blank, bool) {
  const auto batch = checked_batch(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t steps = log_probs.size(0), samples = log_probs.size(1);
  const int64_t longest = samples > 0 ? *std::max_element(target_lengths.begin(), target_lengths.end()) : 0;
  const Tensor losses = detail::empty_contiguous({samples}, log_probs.scalar_type(), log_probs.device());
  const Tensor log_alpha =
      detail::empty_contiguous({samples, steps, 2 * longest + 1}, log_probs.scalar_type(), log_probs.device());
  kernels::ctc_loss(log_probs.device().type, losses, log_alpha, contiguous(log_probs), labels(targets), batch);
  return {losses, log_alpha};
}

static Tensor _ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                                 IntArrayRef input_lengths, IntArrayRef target_lengths, const Tensor& losses,
                                 const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const auto batch = checked_batch(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t steps = log_probs.size(0), samples = log_probs.size(1);
  const int64_t longest = samples > 0 ? *std::max_element(target_lengths.begin(), target_lengths.end()) : 0;
  RUSH_CHECK_VALUE(grad.sizes() == IntArrayRef(samples) && losses.sizes() == IntArrayRef(samples) &&
                       log_alpha.sizes() == IntArrayRef({samples, steps, 2 * longest + 1}),
                   kOp, ": grad, neg_log_likelihood and log_alpha have shapes ", grad.sizes(), ", ", losses.sizes(),
                   " and ", log_alpha.sizes(), ", log_probs ", log_probs.sizes());
  for (const Tensor* t : {&grad, &losses, &log_alpha}) {
    RUSH_CHECK_TYPE(t->scalar_type() == log_probs.scalar_type(), kOp, ": expected ", log_probs.scalar_type(),
                    " like log_probs, got ", t->scalar_type());
  }
  const Tensor result = detail::empty_contiguous(log_probs.sizes(), log_probs.scalar_type(), log_probs.device());
  kernels::ctc_loss_backward(log_probs.device().type, result, contiguous(grad), contiguous(log_probs), labels(targets),
                             contiguous(losses), contiguous(log_alpha), batch, zero_infinity);
  return result;
}

static Tensor ctc_loss_IntList(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                               IntArrayRef target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  detail::check_reduction(kOp, reduction);
  const bool batched = log_probs.dim() != 2;
  Tensor losses = std::get<0>(ops::_ctc_loss(batched ? log_probs : log_probs.unsqueeze(1), targets, input_lengths,
                                             target_lengths, blank, zero_infinity));
  if (zero_infinity) losses = where(losses == std::numeric_limits<double>::infinity(), 0, losses);
  if (reduction == rush::Reduction::Mean) {
    std::vector<double> parts;
    for (const int64_t length : target_lengths) parts.push_back(static_cast<double>(std::max<int64_t>(length, 1)));
    return (losses / tensor(ArrayRef<double>(parts), losses.options())).mean();
  }
  if (reduction == rush::Reduction::Sum) return losses.sum();
  return batched ? losses : losses.squeeze(0);
}

// The lengths that a tensor of any integers and any shape holds.
static std::vector<int64_t> lengths_of(const char* name, const Tensor& lengths) {
  RUSH_CHECK_TYPE(is_integral(lengths.scalar_type(), /*include_bool=*/false), kOp, ": expected ", name,
                  " of integers, got ", lengths.scalar_type());
  RUSH_CHECK_NOT_IMPLEMENTED(!lengths.is_meta(), kOp, ": ", name, " must have values, but are on the meta device");
  return read_integers(lengths);
}

static Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  return ops::ctc_loss_IntList(log_probs, targets, lengths_of("input_lengths", input_lengths),
                               lengths_of("target_lengths", target_lengths), blank, reduction, zero_infinity);
}

}  // namespace native

void register_ctc_loss_ops(Registry& r) {
  r.composite(ops::ctc_loss, native::ctc_loss);
  r.composite(ops::ctc_loss_IntList, native::ctc_loss_IntList);
  r.native(ops::_ctc_loss, native::_ctc_loss);
  r.native(ops::_ctc_loss_backward, native::_ctc_loss_backward);
}

}  // namespace rush
