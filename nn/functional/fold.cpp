#include "nn/functional/fold.h"

#include "core/ops/nn/im2col.h"

namespace rush::nn::functional {

Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return im2col(input, o.kernel_size().ref(), o.dilation().ref(), o.padding().ref(), o.stride().ref());
}

Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  return col2im(input, o.output_size().ref(), o.kernel_size().ref(), o.dilation().ref(), o.padding().ref(),
                o.stride().ref());
}

}  // namespace rush::nn::functional
