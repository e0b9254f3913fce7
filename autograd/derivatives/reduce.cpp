#include "core/ops/reduce.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/view.h"

namespace rush {

namespace {

// The gradient of a reduced tensor, with the reduced dimensions back as ones so that it broadcasts to `sizes`.
Tensor restore_dims(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim) {
  if (keepdim || sizes.empty()) return grad;
  DimVector shape(sizes);
  for (int64_t d : wrap_dims(dim ? *dim : IntArrayRef(), static_cast<int64_t>(sizes.size()), "sum", true)) shape[d] = 1;
  return grad.reshape(shape);
}

struct SumBackward final : Node {
  DimVector sizes;
  void save(const Tensor& self, std::optional<ScalarType>) { sizes = self.sizes(); }
  Tensors apply(const Tensors& g) override { return {g[0].expand(sizes)}; }
};

struct SumDimBackward final : Node {
  DimVector sizes, dims;
  bool keepdim = false;
  void save(const Tensor& self, OptionalIntArrayRef dim, bool keep, std::optional<ScalarType>) {
    sizes = self.sizes();
    if (dim) dims = *dim;
    keepdim = keep;
  }
  Tensors apply(const Tensors& g) override {
    return {restore_dims(g[0], sizes, OptionalIntArrayRef(dims), keepdim).expand(sizes)};
  }
};

}  // namespace

void register_reduce_derivatives(Registry& r) {
  derive<ops::sum, SumBackward>(r);
  derive<ops::sum_dim, SumDimBackward>(r);
}

}  // namespace rush
