#include "core/ops/nn/linear.h"

#include "autograd/derivatives/register.h"
#include "autograd/derivatives/sparse/sparse.h"
#include "autograd/grad_mode.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/fused.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

namespace {

// d(X W^T + b) = G W*, G^T X*, G, summed over the rows: by the product that reads them anyway, or by the engine.
struct LinearBackward final : Node {
  Saved input, weight;
  DimVector input_sizes, weight_sizes;
  bool has_row_of_biases = false;
  RUSH_SAVED(input, weight)
  void save(const Tensor& x, const Tensor& w, const std::optional<Tensor>& b) {
    if (needs(1)) input = x;
    if (needs(0)) weight = w;
    input_sizes = x.sizes();
    weight_sizes = w.sizes();
    has_row_of_biases = b && w.dim() == 2 && b->dim() == 1 && b->size(0) == w.size(0) && !x.is_complex();
  }
  Tensors apply(const Tensors& g) override {
    const int64_t in = weight_sizes.back(), out = weight_sizes.size() == 1 ? 1 : weight_sizes[0];
    const int64_t rows = checked_numel(IntArrayRef(input_sizes).slice(0, input_sizes.size() - 1));
    const Tensor grad = g[0].reshape({rows, out});
    Tensor input_grad, weight_grad;
    if (needs(0)) input_grad = grad.mm(weight.get().conj().reshape({out, in})).reshape(input_sizes);
    if (needs(1) && needs(2) && has_row_of_biases && !GradMode::is_enabled()) {
      const auto [by_weight, by_bias] = ops::linear_parameter_gradients(grad, input.get().reshape({rows, in}));
      return {input_grad, by_weight, by_bias};
    }
    if (needs(1)) weight_grad = grad.t().mm(input.get().conj().reshape({rows, in})).reshape(weight_sizes);
    return {input_grad, weight_grad, g[0]};
  }
};

}  // namespace

void register_linear_derivatives(Registry& r) { derive_dense<ops::linear, LinearBackward, native::linear_sparse>(r); }

}  // namespace rush
