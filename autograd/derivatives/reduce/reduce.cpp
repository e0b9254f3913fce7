#include "core/ops/reduce/reduce.h"

#include "autograd/derivatives/reduce/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "autograd/derivatives/sparse/sparse.h"
#include "core/ops/basic.h"
#include "core/ops/reduce/scan.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/rearrange.h"

namespace rush {

namespace {

struct OfAll : Node {
  ReducedShape shape;
  void save(const Tensor& self, std::optional<ScalarType>) { shape.save(self, {}); }
};
struct AlongDims : Node {
  ReducedShape shape;
  void save(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) { shape.save(self, dim); }
};

struct SumBackward final : OfAll {  // every element has the sum's gradient
  Tensors apply(const Tensors& g) override { return {g[0].expand(shape.sizes)}; }
};
struct SumDimBackward final : AlongDims {
  Tensors apply(const Tensors& g) override { return {shape.restore(g[0]).expand(shape.sizes)}; }
};
struct MeanBackward final : OfAll {  // g / n
  Tensors apply(const Tensors& g) override { return {(g[0] / shape.count).expand(shape.sizes)}; }
};
struct MeanDimBackward final : AlongDims {
  Tensors apply(const Tensors& g) override { return {(shape.restore(g[0]) / shape.count).expand(shape.sizes)}; }
};

struct NansumBackward final : Node {  // as sum, and nothing for NaN
  Saved self;
  ReducedShape shape;
  RUSH_SAVED(self)
  void save(const Tensor& x, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
    self = x;
    shape.save(x, dim);
  }
  Tensors apply(const Tensors& g) override {
    return {shape.restore(g[0]).expand(shape.sizes).masked_fill(self.get().isnan(), 0)};
  }
};

// For each element the product of the others along `dim`: of those before it times those behind it. A division by the
// element would fail at zeros.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  if (n == 0) return x;
  const Tensor one = ones_like(x.narrow(dim, 0, 1));
  const auto before = [&](const Tensor& t) { return cat({one, t.narrow(dim, 0, n - 1)}, dim).cumprod(dim); };
  return before(x) * before(x.flip(dim)).flip(dim);
}

struct ProdBackward final : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& x, std::optional<ScalarType>) { self = x; }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {g[0] * product_of_others(x.to(g[0].scalar_type()).reshape(-1), 0).conj().view(x.sizes())};
  }
};

struct ProdDimBackward final : Node {
  Saved self;
  int64_t dim = 0;
  bool keepdim = false;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, dim, keepdim, std::ignore); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get().to(g[0].scalar_type());
    if (x.dim() == 0) return {g[0]};
    return {(keepdim ? g[0] : g[0].unsqueeze(wrap_dim(dim, x.dim(), "prod"))) * product_of_others(x, dim).conj()};
  }
};

}  // namespace

void register_reduce_derivatives(Registry& r) {
  derive_dense<ops::sum, SumBackward, native::sum_sparse>(r);
  derive_dense<ops::sum_dim, SumDimBackward, native::sum_sparse_dim>(r);
  derive<ops::mean, MeanBackward>(r);
  derive<ops::mean_dim, MeanDimBackward>(r);
  derive<ops::nansum, NansumBackward>(r);
  derive<ops::prod, ProdBackward>(r);
  derive<ops::prod_dim, ProdDimBackward>(r);
}

}  // namespace rush
