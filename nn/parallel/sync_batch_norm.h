// SyncBatchNorm: batch normalisation by the rows of all processes.
#pragma once
#include "core/distributed/init.h"
#include "nn/functional/norm.h"
#include "nn/modules/norm.h"

namespace rush::nn {

namespace functional {

/// batch_norm by the mean and the variance of each channel over the batches of all processes of the group: (N, C,
/// spatial...) -> the same shape, where N may differ. Two all_reduces in the forward pass, and two in the backward
/// pass. Without options.training() it is batch_norm. Throws ValueError where training has one value for each channel
/// only.
Tensor sync_batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                       const BatchNormFuncOptions& options, const distributed::Group& group = distributed::world());

}  // namespace functional

/// BatchNorm of any dimension, which in training takes the rows of all processes of a group together.
class SyncBatchNormImpl : public NormImplBase<2, SyncBatchNormImpl, BatchNormOptions> {
 public:
  /// For the processes of `group`; null: all.
  explicit SyncBatchNormImpl(const BatchNormOptions& options, distributed::Group group = nullptr)
      : NormImplBase(options), group_(std::move(group)) {}
  void pretty_print(std::ostream& stream) const override;
  /// (N, C, spatial...) -> the same shape. Throws ValueError on an input without channels.
  Tensor forward(const Tensor& input);

 protected:
  void _check_input_dim(const Tensor& input) override;

 private:
  distributed::Group group_;
};
// torch.nn.SyncBatchNorm.
RUSH_MODULE(SyncBatchNorm);

}  // namespace rush::nn
