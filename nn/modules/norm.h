// BatchNorm, InstanceNorm, LayerNorm, GroupNorm, RMSNorm, LocalResponseNorm, CrossMapLRN2d.
#pragma once
#include "core/ops/factory/factories.h"
#include "nn/init.h"
#include "nn/modules/options_module.h"
#include "nn/options/norm.h"

namespace rush::nn {

/// What batch and instance normalisation share. Parameters weight (C), one at first, and bias (C), zero, where affine;
/// buffers running_mean, running_var (C) and num_batches_tracked () where they track.
template <size_t D, class Derived, class Options>
class NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const Options& options) : options(options) { NormImplBase::reset(); }
  void reset() override {
    const int64_t channels = options.num_features();
    const auto each_channel = [&](bool wanted) { return wanted ? empty(channels) : Tensor(); };
    weight = this->register_parameter("weight", each_channel(options.affine()), options.affine());
    bias = this->register_parameter("bias", each_channel(options.affine()), options.affine());
    const bool tracks = options.track_running_stats();
    running_mean = this->register_buffer("running_mean", each_channel(tracks));
    running_var = this->register_buffer("running_var", each_channel(tracks));
    num_batches_tracked = this->register_buffer("num_batches_tracked", tracks ? zeros({}, kInt64) : Tensor());
    reset_running_stats();
    reset_parameters();
  }
  void reset_parameters() {
    if (!options.affine()) return;
    init::ones_(weight);
    init::zeros_(bias);
  }
  /// Puts the running statistics back to mean 0 and variance 1.
  void reset_running_stats() {
    if (!options.track_running_stats()) return;
    init::zeros_(running_mean);
    init::ones_(running_var);
    init::zeros_(num_batches_tracked);
  }

  Options options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  /// Throws ValueError where forward cannot take the input's number of dimensions.
  virtual void _check_input_dim(const Tensor& input) = 0;
  // Of batch normalisations: counts the batch; returns its weight in the running statistics.
  double next_momentum() {
    if (!this->is_training() || !num_batches_tracked.defined()) return options.momentum().value_or(0);
    num_batches_tracked.add_(1);
    return options.momentum() ? *options.momentum() : 1 / num_batches_tracked.template item<double>();
  }
};

/// The batch normalisations of one, two and three dimensions. Ioffe and Szegedy, "Batch normalization" (2015).
template <size_t D, class Derived>
class BatchNormImplBase : public NormImplBase<D, Derived, BatchNormOptions> {
 public:
  using NormImplBase<D, Derived, BatchNormOptions>::NormImplBase;
  void pretty_print(std::ostream& stream) const override;
  /// (N, C, spatial...) -> the same shape. Throws ValueError on another number of dimensions.
  Tensor forward(const Tensor& input);
  /// relu(forward(input) + residual) in fewer passes, without the sum where `residual` is undefined. Throws as
  /// `forward` does, ValueError for a residual of another shape than the input's, TypeError for one of another dtype.
  Tensor forward_relu(const Tensor& input, const Tensor& residual = {});

 protected:
  void _check_input_dim(const Tensor& input) override;

 private:
  // The part of a call that comes before the operator: the input's dimensions are checked and the batch is counted.
  struct Call {
    Tensor running_mean, running_var;
    functional::BatchNormFuncOptions options;
  };
  Call next_call(const Tensor& input);
};

/// The instance normalisations: each channel of each sample for itself. Ulyanov et al. (2016).
template <size_t D, class Derived>
class InstanceNormImpl : public NormImplBase<D, Derived, InstanceNormOptions> {
 public:
  using NormImplBase<D, Derived, InstanceNormOptions>::NormImplBase;
  void pretty_print(std::ostream& stream) const override;
  /// (N, C, spatial...) or (C, spatial...) -> the same shape. Throws ValueError on another number of dimensions.
  Tensor forward(const Tensor& input);

 protected:
  void _check_input_dim(const Tensor& input) override;
};

#define RUSH_NORM_MODULE(Name, D, Base)                                      \
  class Name##D##dImpl : public Base<D, Name##D##dImpl> {                    \
   public:                                                                   \
    explicit Name##D##dImpl(const Name##Options& options) : Base(options) {} \
  };                                                                         \
  RUSH_MODULE(Name##D##d)
// torch.nn.BatchNorm1d (on (N, C) or (N, C, L)), BatchNorm2d, BatchNorm3d.
RUSH_NORM_MODULE(BatchNorm, 1, BatchNormImplBase);
RUSH_NORM_MODULE(BatchNorm, 2, BatchNormImplBase);
RUSH_NORM_MODULE(BatchNorm, 3, BatchNormImplBase);
// torch.nn.InstanceNorm1d, InstanceNorm2d, InstanceNorm3d.
RUSH_NORM_MODULE(InstanceNorm, 1, InstanceNormImpl);
RUSH_NORM_MODULE(InstanceNorm, 2, InstanceNormImpl);
RUSH_NORM_MODULE(InstanceNorm, 3, InstanceNormImpl);
#undef RUSH_NORM_MODULE

/// torch.nn.LocalResponseNorm, on (N, C, spatial...).
RUSH_OPTIONS_MODULE(LocalResponseNorm)

/// What LocalResponseNorm computes, on (N, C, H, W), with PyTorch's deviations: channel 0 stays in the sum of all
/// channels from (size + 1) / 2 on, where it has left their window; an even size counts as the odd one below, but in
/// the mean. The gradient is that of these values; PyTorch's, of a window moved aside, is not. torch.nn.CrossMapLRN2d.
class CrossMapLRN2dImpl : public Cloneable<CrossMapLRN2dImpl> {
 public:
  explicit CrossMapLRN2dImpl(const CrossMapLRN2dOptions& options) : options(options) { CrossMapLRN2dImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  CrossMapLRN2dOptions options;
};
RUSH_MODULE(CrossMapLRN2d);

/// Parameters weight, one at first, and bias, zero, of the normalized shape. Ba et al., "Layer normalization" (2016).
/// torch.nn.LayerNorm.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
RUSH_MODULE(LayerNorm);

/// Parameter weight of the normalized shape, one at first. torch.nn.RMSNorm.
class RMSNormImpl : public Cloneable<RMSNormImpl> {
 public:
  explicit RMSNormImpl(std::vector<int64_t> normalized_shape)
      : RMSNormImpl(RMSNormOptions(std::move(normalized_shape))) {}
  explicit RMSNormImpl(RMSNormOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  RMSNormOptions options;
  Tensor weight;
};
RUSH_MODULE(RMSNorm);

/// Parameters weight (C), one at first, and bias (C), zero. Wu and He, "Group normalization" (2018).
/// torch.nn.GroupNorm.
class GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels) : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  GroupNormOptions options;
  Tensor weight, bias;
};
RUSH_MODULE(GroupNorm);

}  // namespace rush::nn
