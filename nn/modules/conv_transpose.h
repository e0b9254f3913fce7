// Transposed convolutions.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/conv.h"

namespace rush::nn {

/// What the transposed convolutions of one, two and three dimensions share. Parameters weight (in, out / groups,
/// kernel...) and bias (out), both uniform within 1 / sqrt(out / groups * kernel...) at first.
template <size_t D, class Derived>
class ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// (N, C, spatial...) -> (N, O, spatial'...), also without N. Several sizes are possible where the stride is more
  /// than 1: output_size, the last D or all sizes, chooses instead of the option output_padding. Throws ValueError for
  /// one that is not possible.
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt);

  ConvTransposeOptions<D> options;
  Tensor weight, bias;

 private:
  ExpandingArray<D> output_padding(const Tensor& input, const std::optional<IntArrayRef>& output_size) const;
};

#define RUSH_CONV_TRANSPOSE_MODULE(D)                                                                          \
  class ConvTranspose##D##dImpl : public ConvTransposeNdImpl<D, ConvTranspose##D##dImpl> {                     \
   public:                                                                                                     \
    ConvTranspose##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)          \
        : ConvTranspose##D##dImpl(ConvTransposeOptions<D>(in_channels, out_channels, kernel_size)) {}          \
    explicit ConvTranspose##D##dImpl(const ConvTransposeOptions<D>& options) : ConvTransposeNdImpl(options) {} \
  };                                                                                                           \
  RUSH_MODULE(ConvTranspose##D##d)
// torch.nn.ConvTranspose1d, ConvTranspose2d, ConvTranspose3d.
RUSH_CONV_TRANSPOSE_MODULE(1);
RUSH_CONV_TRANSPOSE_MODULE(2);
RUSH_CONV_TRANSPOSE_MODULE(3);
#undef RUSH_CONV_TRANSPOSE_MODULE

}  // namespace rush::nn
