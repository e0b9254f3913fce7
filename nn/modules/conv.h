// Convolutions.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/conv.h"

namespace rush::nn {

/// What the convolutions of one, two and three dimensions share. Parameters weight (out, in / groups, kernel...) and
/// bias (out), both uniform within 1 / sqrt(in / groups * kernel...) at first.
template <size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(const ConvOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// (N, C, spatial...) -> (N, O, spatial'...), also without N.
  Tensor forward(const Tensor& input);

  ConvOptions<D> options;
  Tensor weight, bias;

 private:
  // How many elements go before and after each spatial dimension, last dimension first.
  std::vector<int64_t> padding_both_sides() const;
};

#define RUSH_CONV_MODULE(D)                                                                  \
  class Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl> {                              \
   public:                                                                                   \
    Conv##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size) \
        : Conv##D##dImpl(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}          \
    explicit Conv##D##dImpl(const ConvOptions<D>& options) : ConvNdImpl(options) {}          \
  };                                                                                         \
  RUSH_MODULE(Conv##D##d)
// torch.nn.Conv1d, Conv2d, Conv3d.
RUSH_CONV_MODULE(1);
RUSH_CONV_MODULE(2);
RUSH_CONV_MODULE(3);
#undef RUSH_CONV_MODULE

}  // namespace rush::nn
