#include "core/ops/reduce.h"

#include "autograd/derivatives/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/binary.h"

namespace rush {

namespace {

struct SumBackward final : Node {  // every element has the sum's gradient
  ReducedShape shape;
  void save(const Tensor& self, std::optional<ScalarType>) { shape.save(self, {}); }
  Tensors apply(const Tensors& g) override { return {g[0].expand(shape.sizes)}; }
};

struct SumDimBackward final : Node {
  ReducedShape shape;
  void save(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) { shape.save(self, dim); }
  Tensors apply(const Tensors& g) override { return {shape.restore(g[0]).expand(shape.sizes)}; }
};

struct MeanBackward final : Node {  // g / n
  ReducedShape shape;
  void save(const Tensor& self, std::optional<ScalarType>) { shape.save(self, {}); }
  Tensors apply(const Tensors& g) override { return {(g[0] / shape.count).expand(shape.sizes)}; }
};

struct MeanDimBackward final : Node {
  ReducedShape shape;
  void save(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) { shape.save(self, dim); }
  Tensors apply(const Tensors& g) override { return {(shape.restore(g[0]) / shape.count).expand(shape.sizes)}; }
};

}  // namespace

void register_reduce_derivatives(Registry& r) {
  derive<ops::sum, SumBackward>(r);
  derive<ops::sum_dim, SumDimBackward>(r);
  derive<ops::mean, MeanBackward>(r);
  derive<ops::mean_dim, MeanDimBackward>(r);
}

}  // namespace rush
