// Random numbers do not depend on what they are written over, nor, as far as gradients go, on their parameters.
#include "core/ops/random/random.h"

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"
#include "core/ops/nn/dropout.h"

namespace rush {

namespace {

struct RandomBackward final : Node {
  Tensors apply(const Tensors& g) override {
    const Tensor none = zeros_like(g[0]);
    return {none, none};
  }
};

// Linear, and its own transpose.
struct DropoutNode : Node {
  double scale = 1;
  Saved mask;
  RUSH_SAVED(mask)
  Tensors apply(const Tensors& g) override { return {ops::native_dropout_backward(g[0], mask.get(), scale)}; }
};
struct NativeDropoutBackward final : DropoutNode {
  void save(const Tensor&, double p, std::optional<bool> train) {
    scale = !train.value_or(true) ? 1 : p == 1 ? 0 : 1 / (1 - p);
  }
  void save_output(const Tensor&, const Tensor& kept) { mask = kept; }
};
struct NativeDropoutBackwardBackward final : DropoutNode {
  auto saved_arguments() { return std::tie(std::ignore, mask, scale); }
};

}  // namespace

void register_random_derivatives(Registry& r) {
  derive_all<RandomBackward, ops::uniform_, ops::normal_, ops::log_normal_, ops::cauchy_, ops::exponential_,
             ops::geometric_, ops::random_, ops::random__to, ops::random__from, ops::bernoulli__float, ops::bernoulli_,
             ops::bernoulli, ops::bernoulli_p, ops::normal_Tensor_float, ops::normal_float_Tensor,
             ops::normal_Tensor_Tensor>(r);
  derive<ops::native_dropout, NativeDropoutBackward>(r);
  derive<ops::native_dropout_backward, NativeDropoutBackwardBackward>(r);
}

}  // namespace rush
