#include "core/ops/gather.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/factories.h"

namespace rush {

namespace {

struct GatherBackward final : Node {
  DimVector sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  void save(const Tensor& self, int64_t along, const Tensor& at, bool) {
    sizes = self.sizes();
    dim = along;
    index = at;
  }
  Tensors apply(const Tensors& g) override {
    return {scatter_add(zeros(sizes, g[0].options()), dim, index.get(), g[0])};
  }
};

// The gradient of a scatter's source: that of the elements it was written to; none where the index does not reach.
Tensor source_grad(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef source_sizes) {
  const Tensor used = gather(grad, dim, index);
  if (used.sizes() == source_sizes) return used;
  const Tensor padded = zeros(source_sizes, grad.options());
  const DimVector strides = used.dim() == padded.dim() ? DimVector(padded.strides()) : DimVector(used.dim(), 1);
  padded.as_strided(used.sizes(), strides, 0).copy_(used);
  return padded;
}

struct ScatterBackward final : Node {
  DimVector source_sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  void save(const Tensor&, int64_t along, const Tensor& at, const Tensor& src) {
    source_sizes = src.sizes();
    dim = along;
    index = at;
  }
  Tensors apply(const Tensors& g) override {
    Tensors grads(3);
    if (needs(0)) grads[0] = scatter(g[0], dim, index.get(), 0);
    if (needs(2)) grads[2] = source_grad(g[0], dim, index.get(), source_sizes);
    return grads;
  }
};

struct ScatterValueBackward final : Node {
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  void save(const Tensor&, int64_t along, const Tensor& at, const Scalar&) {
    dim = along;
    index = at;
  }
  Tensors apply(const Tensors& g) override { return {scatter(g[0], dim, index.get(), 0)}; }
};

struct ScatterAddBackward final : Node {
  DimVector source_sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  void save(const Tensor&, int64_t along, const Tensor& at, const Tensor& src) {
    source_sizes = src.sizes();
    dim = along;
    index = at;
  }
  Tensors apply(const Tensors& g) override {
    return {g[0], Tensor(), needs(2) ? source_grad(g[0], dim, index.get(), source_sizes) : Tensor()};
  }
};

}  // namespace

void register_gather_derivatives(Registry& r) {
  derive<ops::gather, GatherBackward>(r);
  derive<ops::scatter, ScatterBackward>(r);
  derive<ops::scatter_, ScatterBackward>(r);
  derive<ops::scatter_value, ScatterValueBackward>(r);
  derive<ops::scatter__value, ScatterValueBackward>(r);
  derive<ops::scatter_add, ScatterAddBackward>(r);
  derive<ops::scatter_add_, ScatterAddBackward>(r);
}

}  // namespace rush
