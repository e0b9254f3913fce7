#include "core/ops/reduce/vector_norm.h"

#include <cmath>

#include "autograd/derivatives/reduce/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/pointwise/power.h"

namespace rush {

namespace {

// d|x|_p = g sgn(x) |x|^(p-1) / |x|_p^(p-1), and 0 where the norm is 0.
struct VectorNormBackward final : Node {
  Saved self, result;
  ReducedShape shape;
  double p = 2;
  RUSH_SAVED(self, result)
  void save(const Tensor& x, const Scalar& ord, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
    self = x;
    p = ord.toDouble();
    shape.save(x, dim);
  }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), norm = shape.restore(result.get()), grad = shape.restore(g[0]);
    return {gradient(x, norm, grad)};
  }

 private:
  Tensor gradient(const Tensor& x, const Tensor& norm, const Tensor& grad) const {
    if (p == 0) return Tensor();  // a count has no gradient
    if (p == 1) return x.sgn() * grad;
    if (p == 2) return grad * (x / norm).masked_fill(norm.eq(0), 0);
    const Tensor size = x.abs();
    if (std::isinf(p)) {  // the elements of the extreme size share the gradient
      const Tensor mask = size.eq(norm).logical_or(size.isnan()).to(grad.scalar_type());
      return x.sgn() * (grad / mask.sum(shape.dims, true) * mask);
    }
    if (p < 1) return x.sgn() * size.pow(p - 1).masked_fill(x.eq(0), 0) * grad * norm.pow(1 - p);
    const Tensor scale = (grad / norm.pow(p - 1)).masked_fill(norm.eq(0), 0);
    return (p < 2 ? x.sgn() * size.pow(p - 1) : x * size.pow(p - 2)) * scale;
  }
};

}  // namespace

void register_vector_norm_derivatives(Registry& r) { derive<ops::linalg_vector_norm, VectorNormBackward>(r); }

}  // namespace rush
