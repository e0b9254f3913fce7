#include "examples/gpt/linear_cross_entropy.h"

#include "rushlight.h"

namespace examples {

namespace {

using rush::Tensor;
using rush::Tensors;
using rush::autograd::AutogradContext;

Tensor sum_of_losses(const Tensor& logits, const Tensor& target, rush::ScalarType dtype) {
  const auto sum = static_cast<int64_t>(rush::Reduction::Sum);
  return std::get<0>(rush::ops::cross_entropy_forward(logits, target, std::nullopt, sum, -100, 0.0, dtype));
}

struct LinearCrossEntropy : rush::autograd::Function<LinearCrossEntropy> {
  static constexpr rush::autograd::CustomAutocast autocast{};  // backward as forward

  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& target, int64_t chunk, bool differentiate) {
    const int64_t rows = input.size(0);
    const Tensor total =
        rush::zeros({}, input.options().dtype(input.scalar_type() == rush::kFloat64 ? rush::kFloat64 : rush::kFloat32));
    const Tensor by_input = differentiate ? rush::empty_like(input) : Tensor();
    const Tensor by_weight = differentiate ? rush::empty_like(weight) : Tensor();
    for (int64_t begin = 0; begin < rows; begin += chunk) {
      const int64_t count = std::min(chunk, rows - begin);
      const Tensor x = input.narrow(0, begin, count), y = target.narrow(0, begin, count);
      Tensor logits = rush::nn::functional::linear(x, weight, bias);  // (n, V)
      if (!differentiate) {
        total.add_(sum_of_losses(logits, y, total.scalar_type()));
        continue;
      }
      total.add_(rush::cross_entropy_gradient_(logits, y));
      const Tensor& by_logits = logits;  // what they have become
      by_input.narrow(0, begin, count).copy_(by_logits.mm(weight));
      by_weight.addmm_(by_logits.t(), x.to(by_logits.scalar_type()), /*beta=*/begin > 0 ? 1 : 0);
    }
    const double share = 1 / static_cast<double>(rows);
    ctx->saved_data["share"] = share;
    ctx->saved_data["by_input"] = by_input;
    ctx->saved_data["by_weight"] = by_weight;
    return total * share;
  }

  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    RUSH_CHECK_NOT_IMPLEMENTED(!rush::GradMode::is_enabled(), "linear_cross_entropy: differentiable once only");
    const Tensor factor = grads[0] * ctx->saved_data["share"].toDouble();
    return {ctx->saved_data["by_input"].toTensor() * factor,
            ctx->saved_data["by_weight"].toTensor() * factor,
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            int64_t max_logits) {
  const int64_t rows = input.size(0), classes = weight.size(0);
  RUSH_CHECK_VALUE(rows > 0 && max_logits > 0, "linear_cross_entropy: expected rows, got shape ", input.sizes());
  const int64_t most = std::max<int64_t>(1, max_logits / classes);  // rows at once
  const int64_t chunks = (rows + most - 1) / most;                  // of the same size, but for the last
  const bool differentiate = rush::GradMode::is_enabled() && (input.requires_grad() || weight.requires_grad());
  return LinearCrossEntropy::apply(input, weight, bias, target, (rows + chunks - 1) / chunks, differentiate);
}

}  // namespace examples
