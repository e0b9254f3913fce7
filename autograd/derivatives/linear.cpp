#include "core/ops/linear.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/matmul.h"

namespace rush {

namespace {

// d(X W^T + b) = G W*, G^T X*, G; the engine sums the bias's over the rows.
struct LinearBackward final : Node {
  Saved input, weight;
  DimVector input_sizes, weight_sizes;
  RUSH_SAVED(input, weight)
  void save(const Tensor& x, const Tensor& w, const std::optional<Tensor>&) {
    if (needs(1)) input = x;
    if (needs(0)) weight = w;
    input_sizes = x.sizes();
    weight_sizes = w.sizes();
  }
  Tensors apply(const Tensors& g) override {
    const int64_t in = weight_sizes.back(), out = weight_sizes.size() == 1 ? 1 : weight_sizes[0];
    const int64_t rows = checked_numel(IntArrayRef(input_sizes).slice(0, input_sizes.size() - 1));
    const Tensor grad = g[0].reshape({rows, out});
    Tensor input_grad, weight_grad;
    if (needs(0)) input_grad = grad.mm(weight.get().conj().reshape({out, in})).reshape(input_sizes);
    if (needs(1)) weight_grad = grad.t().mm(input.get().conj().reshape({rows, in})).reshape(weight_sizes);
    return {input_grad, weight_grad, g[0]};
  }
};

}  // namespace

void register_linear_derivatives(Registry& r) { derive<ops::linear, LinearBackward>(r); }

}  // namespace rush
