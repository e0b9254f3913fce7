#include "core/ops/nn/ctc_loss.h"

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

struct CtcLossBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  Saved log_probs, targets, losses, log_alpha;
  DimVector input_lengths, target_lengths;
  int64_t blank = 0;
  bool zero_infinity = false;
  RUSH_SAVED(log_probs, targets, losses, log_alpha)
  auto saved_arguments() { return std::tie(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity); }
  auto saved_results() { return std::tie(losses, log_alpha); }
  Tensors apply(const Tensors& g) override {
    return {ops::_ctc_loss_backward(g[0], log_probs.get(), targets.get(), input_lengths, target_lengths, losses.get(),
                                    log_alpha.get(), blank, zero_infinity),
            Tensor()};
  }
};

// Says so, where the gradient of a gradient would otherwise miss a part without a word.
struct CtcLossBackwardBackward final : Node {
  Tensors apply(const Tensors&) override {
    RUSH_THROW(NotImplementedError, "ctc_loss: can be differentiated once only");
  }
};

}  // namespace

void register_ctc_loss_derivatives(Registry& r) {
  derive<ops::_ctc_loss, CtcLossBackward>(r);
  derive<ops::_ctc_loss_backward, CtcLossBackwardBackward>(r);
}

}  // namespace rush
