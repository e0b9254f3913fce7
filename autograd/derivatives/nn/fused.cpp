#include "core/ops/nn/fused.h"

#include "autograd/derivatives/register.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/norm.h"
#include "core/ops/pointwise/activation.h"

namespace rush {

namespace {

// Both addends get what comes through the sum and what comes through its normalisation. See Note [Fused backward
// passes] for the second derivative.
struct AddLayerNormBackward final : Node {
  static constexpr size_t kDifferentiable = 2;
  Saved sum, weight, bias, mean, rstd, mask;
  DimVector shape;
  double eps = 0, dropout_p = 0;
  ScalarType self_dtype = kFloat32, other_dtype = kFloat32;
  RUSH_SAVED(sum, weight, bias, mean, rstd, mask)
  void save(const Tensor& self, const Tensor& other, IntArrayRef normalized_shape, const OptionalTensor& w,
            const OptionalTensor& b, double e, double p, std::optional<ScalarType>) {
    weight = w;
    bias = b;
    shape = normalized_shape;
    eps = e;
    dropout_p = p;
    self_dtype = self.scalar_type();
    other_dtype = other.scalar_type();
  }
  auto saved_results() { return std::tie(std::ignore, sum, mean, rstd, mask); }
  Tensors apply(const Tensors& g) override {
    if (!g[0].defined()) return to_addends(g[1], Tensor(), Tensor());
    const Tensor x = sum.get(), w = weight.get(), b = bias.get();
    if (GradMode::is_enabled()) return by_operators(g, x, w, b);
    const OptionalTensor through = g[1].defined() ? OptionalTensor(g[1]) : std::nullopt;
    const auto [by_self, by_other, by_weight, by_bias, sums] = ops::add_layer_norm_backward(
        g[0], through, x, shape, mean.get(), rstd.get(), w, b, other_dtype, mask.get(), scale(), false);
    return {needs(0) ? by_self.to(self_dtype) : Tensor(), needs(1) ? by_other : Tensor(), by_weight, by_bias};
  }

 private:
  double scale() const { return dropout_p < 1 ? 1 / (1 - dropout_p) : 0; }
  Tensors to_addends(const Tensor& grad, const Tensor& by_weight, const Tensor& by_bias) const {
    if (!grad.defined()) return {Tensor(), Tensor(), by_weight, by_bias};
    Tensor by_other = needs(1) ? grad.to(other_dtype) : Tensor();
    if (const Tensor kept = mask.get(); needs(1) && kept.defined())
      by_other = native_dropout_backward(by_other, kept, scale());
    return {needs(0) ? grad.to(self_dtype) : Tensor(), by_other, by_weight, by_bias};
  }

  // x^ = (x - mean) r: the gradient by x is r (g w - mean(g w) - x^ mean(g w x^)).
  Tensors by_operators(const Tensors& g, const Tensor& x, const Tensor& w, const Tensor& b) const {
    DimVector dims;
    double count = 1;
    for (size_t d = 1; d <= shape.size(); ++d) {
      dims.push_back(-static_cast<int64_t>(d));
      count *= static_cast<double>(shape[shape.size() - d]);
    }
    const auto mean_of = [&](const Tensor& t) { return t.sum(IntArrayRef(dims), true) / count; };
    const Tensor grad = g[0].to(x.scalar_type());
    const Tensor deviation = x - mean_of(x);
    const Tensor r = (mean_of(deviation * deviation) + eps).rsqrt(), hat = deviation * r;
    const Tensor scaled = w.defined() ? grad * w : grad;
    Tensor by_sum = (scaled - mean_of(scaled) - hat * mean_of(scaled * hat)) * r;
    if (g[1].defined()) by_sum = by_sum + g[1];
    return to_addends(by_sum, w.defined() ? grad * hat : Tensor(), b.defined() ? grad : Tensor());
  }
};

// Two affine maps with GELU between them: see LinearBackward for each.
struct GeluPerceptronBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  Saved input, weight1, bias1, weight2, pre, hidden;
  RUSH_SAVED(input, weight1, bias1, weight2, pre, hidden)
  auto saved_arguments() { return std::tie(input, weight1, bias1, weight2, std::ignore); }
  auto saved_results() { return std::tie(std::ignore, pre, hidden); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), w1 = weight1.get(), w2 = weight2.get();
    if (!GradMode::is_enabled()) {
      const auto [by_x, by_w1, by_b1, by_w2, by_b2] =
          ops::gelu_perceptron_backward(g[0], x, w1, w2, pre.get(), hidden.get());
      return {by_x, by_w1, by_b1, by_w2, by_b2};
    }
    // Computed again, so that their own derivatives are part of the graph.
    const Tensor rows = x.reshape({-1, w1.size(1)}), grad = g[0].reshape({-1, w2.size(0)});
    const Tensor p = linear(rows, w1, bias1.get()), h = gelu(p, "tanh");
    const Tensor by_pre = ops::gelu_backward(grad.mm(w2), p, "tanh");
    return {by_pre.mm(w1).reshape(x.sizes()), by_pre.t().mm(rows), by_pre.sum(0), grad.t().mm(h), grad.sum(0)};
  }
};

}  // namespace

void register_fused_derivatives(Registry& r) {
  derive<ops::add_layer_norm, AddLayerNormBackward>(r);
  derive<ops::gelu_perceptron, GeluPerceptronBackward>(r);
}

}  // namespace rush
