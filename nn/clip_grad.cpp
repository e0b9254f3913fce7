#include "nn/clip_grad.h"

#include <algorithm>
#include <cmath>

#include "autograd/accumulate_grad.h"
#include "autograd/compile/tracer.h"
#include "autograd/grad_mode.h"
#include "core/error/warning.h"
#include "core/ops/basic.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/reduce/vector_norm.h"

namespace rush::nn::utils {

namespace {

// Tensors of one device and dtype, which the operators on lists take together.
std::vector<std::vector<Tensor>> alike(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<Tensor>> groups;
  for (const Tensor& tensor : tensors) {
    const auto fits = [&](const std::vector<Tensor>& group) {
      return group[0].device() == tensor.device() && group[0].scalar_type() == tensor.scalar_type();
    };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    (found != groups.end() ? *found : groups.emplace_back()).push_back(tensor);
  }
  return groups;
}

// The norm of all gradients as one vector: where they are of several devices or dtypes, the norm of these groups'
// norms.
Tensor total_norm(const std::vector<Tensor>& gradients, double norm_type) {
  if (norm_type == 0) return full({}, static_cast<double>(gradients.size()));
  std::vector<Tensor> norms;
  for (const std::vector<Tensor>& group : alike(gradients))
    norms.push_back(foreach_total_norm(group, norm_type).to(norms.empty() ? group[0].options() : norms[0].options()));
  return norms.size() == 1 ? norms[0] : linalg_vector_norm(stack(norms), norm_type);
}

// The gradients of those parameters that have one. Those that will be written are refused here, before the first of
// them is, if they cannot be.
std::vector<Tensor> collect(const std::vector<Tensor>& parameters, bool to_write) {
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    RUSH_CHECK_VALUE(parameter.defined(), "clip_grad: parameter ", i, " is undefined");
    if (!parameter.grad().defined()) continue;
    check_gradient(parameter.grad(), parameter, "clip_grad: the gradient of parameter ", i);
    gradients.push_back(gradient_values(parameter));
    const Tensor& gradient = gradients.back();
    RUSH_CHECK_VALUE(!to_write || !may_overlap(gradient.sizes(), gradient.strides()),
                     "clip_grad: the gradient of parameter ", i, " has sizes ", gradient.sizes(), " and strides ",
                     gradient.strides(), ": several of its elements share memory; clone it first");
  }
  return gradients;
}

}  // namespace

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) { return collect(parameters, false); }

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  if (tensors.empty()) return zeros({});
  const Tensor norm = total_norm(tensors, norm_type);
  if (!error_if_nonfinite) return norm;
  const double value = norm.item<double>();
  RUSH_CHECK(std::isfinite(value), "clip_grad_norm_: the norm of order ", norm_type,
             " of the gradients is non-finite, ", value, "; pass error_if_nonfinite=false to scale them nevertheless");
  return norm;
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm) {
  const NoGradGuard no_grad;
  // A norm that is not a number spoils all gradients, as in PyTorch.
  const Tensor coefficient = (max_norm / (total_norm + 1e-6)).clamp_max(1);
  for (const std::vector<Tensor>& group : alike(collect(parameters, true)))
    _foreach_mul_(group, coefficient.to(group[0].device()));
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  if (parameters.empty()) RUSH_WARN_ONCE_PER_CALLER("clip_grad_norm_: there are no parameters to clip");
  const NoGradGuard no_grad;
  const std::vector<Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return 0;
  const Tensor norm = get_total_norm(gradients, norm_type, error_if_nonfinite);
  clip_grads_with_norm_(parameters, max_norm, norm);
  compiler::Tracer::end_before("clip_grad_norm_ returns a number; get_total_norm and clip_grads_with_norm_ read none");
  return norm.item<double>();
}

double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type, bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard no_grad;
  const std::vector<Tensor> gradients = collect(parameters, true);
  for (const Tensor& gradient : gradients) {
    RUSH_CHECK_TYPE(!gradient.is_complex(), "clip_grad_value_: a gradient is complex, which has no order");
  }
  for (const Tensor& gradient : gradients) gradient.clamp_(-clip_value, clip_value);
}

void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

}  // namespace rush::nn::utils
