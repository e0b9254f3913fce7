#include "core/ops/index/gather.h"

#include <algorithm>
#include <string>

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

struct GatherBackward final : Node {
  SavedSizes sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(sizes, dim, index, std::ignore); }
  Tensors apply(const Tensors& g) override {
    return {scatter_add(zeros(sizes, g[0].options()), dim, index.get(), g[0])};
  }
};

// A source has no part in a scatter where the index does not reach.
Tensor cut_source(Tensor src, const Tensor& index) {
  for (int64_t d = 0; d < std::min(src.dim(), index.dim()); ++d) {
    if (src.size(d) != index.size(d)) src = src.narrow(d, 0, index.size(d));
  }
  return src.dim() == index.dim() ? src : src.reshape(index.sizes());
}

// The gradient of a whole source from that of its cut: zeros elsewhere.
Tensor uncut(const Tensor& grad, IntArrayRef source_sizes) {
  if (grad.sizes() == source_sizes) return grad;
  const Tensor padded = zeros(source_sizes, grad.options());
  const DimVector strides = grad.dim() == padded.dim() ? DimVector(padded.strides()) : DimVector(grad.dim(), 1);
  padded.as_strided(grad.sizes(), strides, 0).copy_(grad);
  return padded;
}

// The gradient of a scatter's source: that of the elements it was written to.
Tensor source_grad(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef source_sizes) {
  return uncut(gather(grad, dim, index), source_sizes);
}

struct ScatterNode : Node {
  SavedSizes source_sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(std::ignore, dim, index, source_sizes); }
};

struct ScatterBackward final : ScatterNode {
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
  auto saved_arguments() { return std::tie(std::ignore, dim, index, std::ignore); }
  Tensors apply(const Tensors& g) override { return {scatter(g[0], dim, index.get(), 0)}; }
};

struct ScatterAddBackward final : ScatterNode {
  Tensors apply(const Tensors& g) override {
    return {g[0], Tensor(), needs(2) ? source_grad(g[0], dim, index.get(), source_sizes) : Tensor()};
  }
};

// What a reduction's value is sensitive to: each of its values for a sum, those that equal it for an extremum. By
// PyTorch's scatter_reduce_backward.
struct ScatterReduceBackward final : Node {
  int64_t dim = 0;
  bool include_self = true;
  std::string reduce;
  Saved self, index, src, result;
  RUSH_SAVED(self, index, src, result)

  auto saved_arguments() { return std::tie(self, dim, index, src, reduce, include_self); }
  void save_output(const Tensor& reduced) {
    if (!is_linear()) result = Saved::output(reduced, this);
  }
  Tensors apply(const Tensors& g) override {
    const Tensor at = index.get(), source = src.get();
    const Tensor old = self.get(), values = cut_source(source, at);
    auto [old_grad, value_grad] = reduce == "sum"    ? std::pair(g[0], gather(g[0], dim, at))
                                  : reduce == "mean" ? mean_grads(g[0], at, values)
                                  : reduce == "prod" ? product_grads(g[0], old, at, values)
                                                     : extremum_grads(g[0], old, at, values);
    if (!include_self) old_grad = scatter(old_grad, dim, at, 0);
    return {old_grad, Tensor(), needs(2) ? uncut(value_grad, source.sizes()) : Tensor()};
  }

 private:
  using Pair = std::pair<Tensor, Tensor>;
  bool is_linear() const { return reduce == "sum" || reduce == "mean"; }

  Pair mean_grads(const Tensor& g, const Tensor& at, const Tensor& values) const {
    const Tensor start = full_like(g, include_self ? 1 : 0);
    const Tensor share = g / clamp_min(scatter_add(start, dim, at, ones_like(values)), 1);
    return {share, gather(share, dim, at)};
  }

  // The product of the others: the product over the value itself, or, where the value is the only zero, the product
  // with a one in its place.
  Pair product_grads(const Tensor& g, const Tensor& old, const Tensor& at, const Tensor& values) const {
    const Tensor product = result.get();
    const Tensor nonzero_old = old.masked_fill(old == 0, 1);
    const Tensor old_grad = g * scatter_reduce(nonzero_old, dim, at, values, "prod", include_self) / nonzero_old;
    const Tensor zero = values == 0;
    const Tensor zeros_there = gather(scatter_add(zeros_like(old), dim, at, zero.to(old.scalar_type())), dim, at);
    const Tensor only_zero = logical_and(zero, zeros_there == 1);
    const Tensor others = scatter_reduce(old, dim, at, values.masked_fill(only_zero, 1), "prod", include_self);
    return {old_grad,
            where(only_zero, gather(g * others, dim, at), gather(g * product, dim, at) / values.masked_fill(zero, 1))};
  }

  // Equal extrema share the gradient.
  Pair extremum_grads(const Tensor& g, const Tensor& old, const Tensor& at, const Tensor& values) const {
    const Tensor extremum = result.get();
    Tensor old_is_it = (old == extremum).to(g.scalar_type());
    if (!include_self) old_is_it = scatter(old_is_it, dim, at, 0);
    const Tensor value_is_it = (values == gather(extremum, dim, at)).to(g.scalar_type());
    const Tensor share = g / clamp_min(scatter_add(old_is_it, dim, at, value_is_it), 1);
    return {old_is_it * share, value_is_it * gather(share, dim, at)};
  }
};

}  // namespace

void register_gather_derivatives(Registry& r) {
  derive<ops::gather, GatherBackward>(r);
  derive_all<ScatterBackward, ops::scatter, ops::scatter_>(r);
  derive_all<ScatterValueBackward, ops::scatter_value, ops::scatter__value>(r);
  derive_all<ScatterAddBackward, ops::scatter_add, ops::scatter_add_>(r);
  derive_all<ScatterReduceBackward, ops::scatter_reduce, ops::scatter_reduce_>(r);
}

}  // namespace rush
