#include "core/ops/nn/cudnn_rnn.h"

#include <algorithm>

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

struct CudnnRnnBackward final : Node {
  static constexpr size_t kDifferentiable = 3;
  Saved input, h, c, output, reserve, weight_buf;
  SavedList weights;
  int64_t weights_per_cell = 0, mode = 0, hidden_size = 0, projection = 0, layers = 0;
  bool training = false, bidirectional = false;
  DimVector batch_sizes;
  RUSH_SAVED(input, h, c, output, reserve, weight_buf, weights)
  auto saved_arguments() {
    const auto& unused = std::ignore;
    return std::tie(input, weights, weights_per_cell, unused, h, c, mode, hidden_size, projection, layers, unused,
                    unused, training, bidirectional, batch_sizes, unused);
  }
  auto saved_results() { return std::tie(output, std::ignore, std::ignore, reserve, weight_buf); }
  // Gradients of input, the weights, weight_buf, hx, cx, dropout_state.
  Tensors apply(const Tensors& g) override {
    const size_t count = weights.size(), h_at = count + 2, c_at = count + 3;
    bool needs_weights = false;
    for (size_t i = 0; i < count; ++i) needs_weights = needs_weights || needs(1 + i);
    Tensors grads(count + 5);
    if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return grads;
    auto [grad_input, grad_h, grad_c, grad_weights] = ops::_cudnn_rnn_backward(
        input.get(), weights.get(), weights_per_cell, weight_buf.get(), h.get(), native::if_defined(c.get()),
        output.get(), native::if_defined(g[0]), native::if_defined(g[1]), native::if_defined(g[2]), mode, hidden_size,
        projection, layers, false, 0.0, training, bidirectional, batch_sizes, std::nullopt, reserve.get(),
        {needs(0), needs(h_at), needs(c_at), needs_weights});
    grads[0] = grad_input;
    grads[h_at] = grad_h;
    grads[c_at] = grad_c;
    std::move(grad_weights.begin(), grad_weights.end(), grads.begin() + 1);
    return grads;
  }
};

// cuDNN has no second derivative.
struct CudnnRnnBackwardBackward final : Node {
  Tensors apply(const Tensors&) override {
    RUSH_THROW(NotImplementedError,
               "_cudnn_rnn_backward: recurrent layers that ran through cuDNN can be differentiated once only; run the "
               "forward pass with globalContext().setUserEnabledCuDNN(false)");
  }
};

}  // namespace

void register_cudnn_rnn_derivatives(Registry& r) {
  derive<ops::_cudnn_rnn, CudnnRnnBackward>(r);
  derive<ops::_cudnn_rnn_backward, CudnnRnnBackwardBackward>(r);
}

}  // namespace rush
