#include "core/ops/nn/pool.h"

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"

namespace rush {

namespace {

// values[..., index] for each index, where the last `dims` dimensions of `values` count as one.
Tensor gather_in_plane(const Tensor& values, const Tensor& indices, int dims) {
  const auto flat = [dims](const Tensor& t) { return t.flatten(-dims); };
  return flat(values).gather(-1, flat(indices)).reshape(indices.sizes());
}

// The windows of a pooling operator, as it was called.
struct SavedWindow {
  DimVector kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

template <MaxPoolBackwardOp& backward>
struct MaxPoolNode : Node {
  Saved self, indices;
  SavedWindow w;
  RUSH_SAVED(self, indices)
  auto saved_arguments() { return std::tie(self, w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode); }
  auto saved_results() { return std::tie(std::ignore, indices); }
  Tensors apply(const Tensors& g) override {
    return {backward(g[0], self.get(), w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode, indices.get())};
  }
};
struct MaxPool2dBackward final : MaxPoolNode<ops::max_pool2d_with_indices_backward> {};
struct MaxPool3dBackward final : MaxPoolNode<ops::max_pool3d_with_indices_backward> {};

template <AdaptiveMaxPoolBackwardOp& backward>
struct AdaptiveMaxPoolNode : Node {
  Saved self, indices;
  RUSH_SAVED(self, indices)
  void save(const Tensor& input, IntArrayRef) { self = input; }
  auto saved_results() { return std::tie(std::ignore, indices); }
  Tensors apply(const Tensors& g) override { return {backward(g[0], self.get(), indices.get())}; }
};
struct AdaptiveMaxPool2dBackward final : AdaptiveMaxPoolNode<ops::adaptive_max_pool2d_backward> {};
struct AdaptiveMaxPool3dBackward final : AdaptiveMaxPoolNode<ops::adaptive_max_pool3d_backward> {};

// Of a backward pass on whose result the input's values have no influence: its gradient is zero, and defined.
struct PoolBackwardNode : Node {
  SavedSizes input_sizes;
  // `of_grad` computes the gradient of grad_output from `grad`, the gradient of the result.
  template <class OfGrad>
  Tensors grads(const Tensor& grad, const OfGrad& of_grad) const {
    return {needs(0) ? of_grad() : Tensor(), needs(1) ? zeros(input_sizes, grad.options()) : Tensor()};
  }
};

// The backward pass scatters to `indices`; its own derivative gathers from there.
template <int dims>
struct GatherNode : PoolBackwardNode {
  Saved indices;
  RUSH_SAVED(indices)
  Tensors apply(const Tensors& g) override {
    return grads(g[0], [&] { return gather_in_plane(g[0], indices.get(), dims); });
  }
};

template <int dims>
struct MaxPoolBackwardNode : GatherNode<dims> {
  auto saved_arguments() {
    const auto& unused = std::ignore;
    return std::tie(unused, this->input_sizes, unused, unused, unused, unused, unused, this->indices);
  }
};
struct MaxPool2dBackwardBackward final : MaxPoolBackwardNode<2> {};
struct MaxPool3dBackwardBackward final : MaxPoolBackwardNode<3> {};

template <int dims>
struct AdaptiveMaxPoolBackwardNode : GatherNode<dims> {
  auto saved_arguments() { return std::tie(std::ignore, this->input_sizes, this->indices); }
};
struct AdaptiveMaxPool2dBackwardBackward final : AdaptiveMaxPoolBackwardNode<2> {};
struct AdaptiveMaxPool3dBackwardBackward final : AdaptiveMaxPoolBackwardNode<3> {};

// Averaging is linear, so the derivative of its backward pass is averaging again.
template <AvgPoolBackwardOp& backward>
struct AvgPoolNode : Node {
  Saved self;
  SavedWindow w;
  bool count_include_pad = true;
  std::optional<int64_t> divisor;
  RUSH_SAVED(self)
  auto saved_arguments() {
    return std::tie(self, w.kernel, w.stride, w.padding, w.ceil_mode, count_include_pad, divisor);
  }
  Tensors apply(const Tensors& g) override {
    return {backward(g[0], self.get(), w.kernel, w.stride, w.padding, w.ceil_mode, count_include_pad, divisor)};
  }
};
struct AvgPool2dBackward final : AvgPoolNode<ops::avg_pool2d_backward> {};
struct AvgPool3dBackward final : AvgPoolNode<ops::avg_pool3d_backward> {};

template <AvgPoolOp& forward>
struct AvgPoolBackwardNode : PoolBackwardNode {
  SavedWindow w;
  bool count_include_pad = true;
  std::optional<int64_t> divisor;
  auto saved_arguments() {
    return std::tie(std::ignore, input_sizes, w.kernel, w.stride, w.padding, w.ceil_mode, count_include_pad, divisor);
  }
  Tensors apply(const Tensors& g) override {
    return grads(g[0],
                 [&] { return forward(g[0], w.kernel, w.stride, w.padding, w.ceil_mode, count_include_pad, divisor); });
  }
};
struct AvgPool2dBackwardBackward final : AvgPoolBackwardNode<ops::avg_pool2d> {};
struct AvgPool3dBackwardBackward final : AvgPoolBackwardNode<ops::avg_pool3d> {};

template <AdaptiveAvgPoolBackwardOp& backward>
struct AdaptiveAvgPoolNode : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& input, IntArrayRef) { self = input; }
  Tensors apply(const Tensors& g) override { return {backward(g[0], self.get())}; }
};
struct AdaptiveAvgPool2dBackward final : AdaptiveAvgPoolNode<ops::_adaptive_avg_pool2d_backward> {};
struct AdaptiveAvgPool3dBackward final : AdaptiveAvgPoolNode<ops::_adaptive_avg_pool3d_backward> {};

template <AdaptiveAvgPoolOp& forward, int dims>
struct AdaptiveAvgPoolBackwardNode : PoolBackwardNode {
  DimVector output_size;
  void save(const Tensor& grad, const Tensor& input) {
    input_sizes = input;
    output_size = grad.sizes().slice(static_cast<size_t>(grad.dim() - dims));
  }
  Tensors apply(const Tensors& g) override {
    return grads(g[0], [&] { return forward(g[0], output_size); });
  }
};
struct AdaptiveAvgPool2dBackwardBackward final : AdaptiveAvgPoolBackwardNode<ops::_adaptive_avg_pool2d, 2> {};
struct AdaptiveAvgPool3dBackwardBackward final : AdaptiveAvgPoolBackwardNode<ops::_adaptive_avg_pool3d, 3> {};

}  // namespace

void register_pool_derivatives(Registry& r) {
  derive<ops::max_pool2d_with_indices, MaxPool2dBackward>(r);
  derive<ops::max_pool3d_with_indices, MaxPool3dBackward>(r);
  derive<ops::max_pool2d_with_indices_backward, MaxPool2dBackwardBackward>(r);
  derive<ops::max_pool3d_with_indices_backward, MaxPool3dBackwardBackward>(r);
  derive<ops::adaptive_max_pool2d, AdaptiveMaxPool2dBackward>(r);
  derive<ops::adaptive_max_pool3d, AdaptiveMaxPool3dBackward>(r);
  derive<ops::adaptive_max_pool2d_backward, AdaptiveMaxPool2dBackwardBackward>(r);
  derive<ops::adaptive_max_pool3d_backward, AdaptiveMaxPool3dBackwardBackward>(r);
  derive<ops::avg_pool2d, AvgPool2dBackward>(r);
  derive<ops::avg_pool3d, AvgPool3dBackward>(r);
  derive<ops::avg_pool2d_backward, AvgPool2dBackwardBackward>(r);
  derive<ops::avg_pool3d_backward, AvgPool3dBackwardBackward>(r);
  derive<ops::_adaptive_avg_pool2d, AdaptiveAvgPool2dBackward>(r);
  derive<ops::_adaptive_avg_pool3d, AdaptiveAvgPool3dBackward>(r);
  derive<ops::_adaptive_avg_pool2d_backward, AdaptiveAvgPool2dBackwardBackward>(r);
  derive<ops::_adaptive_avg_pool3d_backward, AdaptiveAvgPool3dBackwardBackward>(r);
}

}  // namespace rush
