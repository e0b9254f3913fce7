#include "core/ops/nn/conv.h"

#include "autograd/derivatives/register.h"
#include "core/ops/pointwise/binary.h"

namespace rush {

namespace {

// What a convolution's backward pass must know besides tensors.
struct ConvSettings {
  DimVector stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;

  auto saved_arguments() { return std::tie(stride, padding, dilation, transposed, output_padding, groups); }
  Tensor convolve(const Tensor& input, const Tensor& weight) const {
    return ops::convolution(input, weight, std::nullopt, stride, padding, dilation, transposed, output_padding, groups);
  }
  std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                              std::array<bool, 3> mask) const {
    return ops::convolution_backward(grad, input, weight, std::nullopt, stride, padding, dilation, transposed,
                                     output_padding, groups, mask);
  }
};

struct ConvolutionBackward final : Node {
  Saved input, weight;
  ConvSettings settings;
  RUSH_SAVED(input, weight)
  auto saved_arguments() { return std::tuple_cat(std::tie(input, weight, std::ignore), settings.saved_arguments()); }
  Tensors apply(const Tensors& g) override {
    const auto [dx, dw, db] =
        settings.backward(g[0], input.get().conj(), weight.get().conj(), {needs(0), needs(1), needs(2)});
    return {dx, dw, db};
  }
};

// A convolution is linear in its input and in its weight, so the gradients dx(g, w), dw(g, x) and db(g) are linear in
// each of theirs, and what flows back through them are convolutions again: for gradients G of dx, H of dw, I of db,
//   d g = conv(G, w) + conv(x, H) + I,    d x = dx(g, H),    d w = dw(g, G).
struct ConvolutionBackwardBackward final : Node {
  Saved grad, input, weight;
  ConvSettings settings;
  RUSH_SAVED(grad, input, weight)
  auto saved_arguments() {
    return std::tuple_cat(std::tie(grad, input, weight, std::ignore), settings.saved_arguments(),
                          std::tie(std::ignore));
  }
  Tensors apply(const Tensors& g) override {
    Tensor dg, dx, dw;
    if (needs(0)) dg = grad_gradient(g[0], g[1], g[2]);
    if (needs(1) && g[1].defined()) {
      dx = std::get<0>(settings.backward(grad.get().conj(), input.get(), g[1], {true, false, false}));
    }
    if (needs(2) && g[0].defined()) {
      dw = std::get<1>(settings.backward(grad.get().conj(), g[0], weight.get(), {false, true, false}));
    }
    return {dg, dx, dw};
  }

 private:
  Tensor grad_gradient(const Tensor& by_input, const Tensor& by_weight, const Tensor& by_bias) const {
    Tensor sum;
    const auto add = [&](const Tensor& term) { sum = sum.defined() ? sum + term : term; };
    if (by_input.defined()) add(settings.convolve(by_input, weight.get().conj()));
    if (by_weight.defined()) add(settings.convolve(input.get().conj(), by_weight));
    if (by_bias.defined()) {
      const Tensor like = grad.get();
      DimVector sizes(static_cast<size_t>(like.dim()), 1);
      sizes[1] = by_bias.size(0);
      add(by_bias.view(sizes).expand(like.sizes()));
    }
    return sum;
  }
};

}  // namespace

void register_conv_derivatives(Registry& r) {
  derive<ops::convolution, ConvolutionBackward>(r);
  derive<ops::convolution_backward, ConvolutionBackwardBackward>(r);
}

}  // namespace rush
