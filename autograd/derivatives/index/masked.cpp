#include "core/ops/index/masked.h"

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"
#include "core/ops/reduce/reduce.h"

namespace rush {

namespace {

struct MaskedFillBackward final : Node {  // self: nothing under the mask; value: the sum of what is under it
  Saved mask;
  RUSH_SAVED(mask)
  void save(const Tensor&, const Tensor& where, const Tensor&) { mask = where; }
  Tensors apply(const Tensors& g) override {
    const Tensor where = mask.get();
    Tensors grads(3);
    if (needs(0)) grads[0] = masked_fill(g[0], where, 0);
    if (needs(2)) grads[2] = masked_select(g[0], where).sum();
    return grads;
  }
};

struct MaskedFillScalarBackward final : Node {
  Saved mask;
  RUSH_SAVED(mask)
  void save(const Tensor&, const Tensor& where, const Scalar&) { mask = where; }
  Tensors apply(const Tensors& g) override { return {masked_fill(g[0], mask.get(), 0)}; }
};

struct MaskedSelectBackward final : Node {
  DimVector sizes;  // that self and the mask broadcast to
  Saved mask;
  RUSH_SAVED(mask)
  void save(const Tensor& self, const Tensor& where) {
    sizes = broadcast_shapes(self.sizes(), where.sizes(), "masked_select");
    mask = where;
  }
  Tensors apply(const Tensors& g) override { return {masked_scatter(zeros(sizes, g[0].options()), mask.get(), g[0])}; }
};

struct MaskedScatterBackward final : Node {  // self: nothing under the mask; source: what is under it, then zeros
  SavedSizes source_sizes;
  Saved mask;
  RUSH_SAVED(mask)
  auto saved_arguments() { return std::tie(std::ignore, mask, source_sizes); }
  Tensors apply(const Tensors& g) override {
    const Tensor where = mask.get();
    Tensors grads(3);
    if (needs(0)) grads[0] = masked_fill(g[0], where, 0);
    if (needs(2)) {
      const Tensor used = masked_select(g[0], where);
      grads[2] = zeros(source_sizes, g[0].options());
      grads[2].as_strided(used.sizes(), 1, 0).copy_(used);
    }
    return grads;
  }
};

}  // namespace

void register_masked_derivatives(Registry& r) {
  derive_all<MaskedFillBackward, ops::masked_fill, ops::masked_fill_>(r);
  derive_all<MaskedFillScalarBackward, ops::masked_fill_Scalar, ops::masked_fill__Scalar>(r);
  derive<ops::masked_select, MaskedSelectBackward>(r);
  derive_all<MaskedScatterBackward, ops::masked_scatter, ops::masked_scatter_>(r);
}

}  // namespace rush
