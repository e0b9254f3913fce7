#include "nn/parallel/sync_batch_norm.h"

#include "autograd/grad_mode.h"
#include "core/distributed/functional.h"
#include "core/ops/basic.h"
#include "nn/module_text.h"

namespace rush::nn {

// The newest batch counts by `momentum`.
static void update(Tensor running, const Tensor& newest, double momentum) {
  const NoGradGuard no_grad;
  if (running.defined()) running.mul_(1 - momentum).add_(newest.to(running.scalar_type()), momentum);
}

Tensor functional::sync_batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormFuncOptions& options, const distributed::Group& group) {
  if (!options.training()) return batch_norm(input, running_mean, running_var, options);
  const int64_t channels = input.size(1), rows = channels == 0 ? 0 : input.numel() / channels;
  DimVector reduced{0}, each_channel(static_cast<size_t>(input.dim()), 1);  // dimensions; (1, C, 1...)
  for (int64_t dim = 2; dim < input.dim(); ++dim) reduced.push_back(dim);
  each_channel[1] = channels;

  // In two passes: the difference of two large sums would lose the variance.
  const Tensor x = input.scalar_type() == kFloat64 ? input : input.to(kFloat32);
  const Tensor sums = distributed::functional::all_reduce(
      cat({x.sum(reduced), x.new_full({1}, static_cast<double>(rows))}), distributed::ReduceOp::SUM, group);
  const double count = sums[channels].item<double>();
  RUSH_CHECK_VALUE(count > 1, "sync_batch_norm: expected more than one value for each channel in training, got ",
                   count);
  const Tensor mean = sums.narrow(0, 0, channels) / count;
  const Tensor centred = x - mean.view(each_channel);
  const Tensor squares =
      distributed::functional::all_reduce(centred.square().sum(reduced), distributed::ReduceOp::SUM, group);
  update(running_mean, mean, options.momentum());
  update(running_var, squares / (count - 1), options.momentum());

  Tensor result = centred * (squares / count + options.eps()).rsqrt().view(each_channel);
  if (options.weight().defined()) result = result * options.weight().view(each_channel);
  if (options.bias().defined()) result = result + options.bias().view(each_channel);
  return result.to(input.scalar_type());
}

void SyncBatchNormImpl::_check_input_dim(const Tensor& input) {
  RUSH_CHECK_VALUE(input.dim() >= 2 && input.size(1) == options.num_features(),
                   "SyncBatchNorm: expected an input of shape (N, ", options.num_features(), ", ...), got ",
                   input.sizes());
}

Tensor SyncBatchNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  _check_input_dim(input);
  const double momentum = next_momentum();
  const auto by_batch = functional::BatchNormFuncOptions()
                            .weight(weight)
                            .bias(bias)
                            .training(is_training() || !running_mean.defined())
                            .momentum(momentum)
                            .eps(options.eps());
  return functional::sync_batch_norm(input, running_mean, running_var, by_batch,
                                     group_ ? group_ : distributed::world());
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("SyncBatchNorm(", options.num_features(), ", eps=", options.eps(),
                                ", momentum=", options.momentum(), ", affine=", options.affine(),
                                ", track_running_stats=", options.track_running_stats(), ")");
}

}  // namespace rush::nn
