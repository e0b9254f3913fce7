// BatchNorm, LayerNorm, GroupNorm, RMSNorm.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/norm.h"

namespace rush::nn {

// What the batch normalisations of one, two and three dimensions share. Parameters weight and bias (C); buffers
// running_mean, running_var (C) and num_batches_tracked (). Ioffe and Szegedy, "Batch normalization" (2015).
template <size_t D, class Derived>
class BatchNormNdImpl : public Cloneable<Derived> {
 public:
  explicit BatchNormNdImpl(const BatchNormOptions& options);
  void reset() override;
  void reset_parameters();
  // Puts the running statistics back to mean 0 and variance 1.
  void reset_running_stats();
  void pretty_print(std::ostream& stream) const override;
  // (N, C, spatial...) -> the same shape. Throws ValueError on another number of dimensions.
  Tensor forward(const Tensor& input);

  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  // Counts the batch; returns its weight in the running statistics.
  double next_momentum();
};

#define RUSH_BATCH_NORM_MODULE(D)                                                               \
  class BatchNorm##D##dImpl : public BatchNormNdImpl<D, BatchNorm##D##dImpl> {                  \
   public:                                                                                      \
    explicit BatchNorm##D##dImpl(const BatchNormOptions& options) : BatchNormNdImpl(options) {} \
  };                                                                                            \
  RUSH_MODULE(BatchNorm##D##d)
// torch.nn.BatchNorm1d (on (N, C) or (N, C, L)), BatchNorm2d, BatchNorm3d.
RUSH_BATCH_NORM_MODULE(1);
RUSH_BATCH_NORM_MODULE(2);
RUSH_BATCH_NORM_MODULE(3);
#undef RUSH_BATCH_NORM_MODULE

// Parameters weight and bias of the normalized shape. Ba et al., "Layer normalization" (2016). torch.nn.LayerNorm.
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

// Parameter weight of the normalized shape. torch.nn.RMSNorm.
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

// Parameters weight and bias (C). Wu and He, "Group normalization" (2018). torch.nn.GroupNorm.
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
