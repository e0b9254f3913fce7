#include "nn/functional/conv.h"

#include "core/ops/nn/conv.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

// `conv` is overloaded: padding is numbers, or "same" or "valid".
template <size_t D, class Conv>
static Tensor convolve(const Conv& conv, const Tensor& input, const Tensor& weight, const ConvFuncOptions<D>& o) {
  const auto bias = optional_tensor(o.bias());
  if (const auto* numbers = std::get_if<ExpandingArray<D>>(&o.padding())) {
    return conv(input, weight, bias, o.stride().ref(), numbers->ref(), o.dilation().ref(), o.groups());
  }
  const std::string_view padding = enumtype::holds<enumtype::kSame>(o.padding()) ? "same" : "valid";
  return conv(input, weight, bias, o.stride().ref(), padding, o.dilation().ref(), o.groups());
}

#define RUSH_CONV(conv)                                                                                               \
  convolve(                                                                                                           \
      [](const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, IntArrayRef stride, auto padding,       \
         IntArrayRef dilation, int64_t groups) { return rush::conv(x, w, bias, stride, padding, dilation, groups); }, \
      input, weight, options)

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options) { return RUSH_CONV(conv1d); }
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options) { return RUSH_CONV(conv2d); }
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options) { return RUSH_CONV(conv3d); }

#define RUSH_CONV_TRANSPOSE(D)                                                                                       \
  Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight, const ConvTranspose##D##dFuncOptions& o) {  \
    return rush::conv_transpose##D##d(input, weight, optional_tensor(o.bias()), o.stride().ref(), o.padding().ref(), \
                                      o.output_padding().ref(), o.groups(), o.dilation().ref());                     \
  }
RUSH_CONV_TRANSPOSE(1)
RUSH_CONV_TRANSPOSE(2)
RUSH_CONV_TRANSPOSE(3)
#undef RUSH_CONV_TRANSPOSE

}  // namespace rush::nn::functional
