#include "core/ops/reduce/extrema.h"

#include "autograd/derivatives/index/selected.h"
#include "autograd/derivatives/reduce/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/reduce/order_statistics.h"

namespace rush {

namespace {

// Of equal extreme elements each takes the same share of the gradient.
Tensor share_out(const Tensor& grad, const Tensor& self, const Tensor& extreme, const ReducedShape& shape) {
  const Tensor mask = self.eq(shape.restore(extreme)).to(grad.scalar_type());
  return shape.restore(grad) / mask.sum(shape.dims, true) * mask;
}

struct SharedBackward : Node {
  Saved self, result;
  ReducedShape shape;
  RUSH_SAVED(self, result)
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override { return {share_out(g[0], self.get(), result.get(), shape)}; }
};

struct ExtremeBackward final : SharedBackward {  // amax and amin
  void save(const Tensor& x, IntArrayRef dim, bool) {
    self = x;
    shape.save(x, dim);
  }
};

struct ExtremeOfAllBackward final : SharedBackward {  // max, min, median, nanmedian
  void save(const Tensor& x) {
    self = x;
    shape.save(x, {});
  }
};

struct AminmaxBackward final : Node {
  Saved self, smallest, largest;
  ReducedShape shape;
  RUSH_SAVED(self, smallest, largest)
  void save(const Tensor& x, std::optional<int64_t> dim, bool) {
    self = x;
    shape.save(x, dim ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef());
  }
  auto saved_results() { return std::tie(smallest, largest); }
  Tensors apply(const Tensors& g) override {
    Tensor total;
    if (g[0].defined()) total = share_out(g[0], self.get(), smallest.get(), shape);
    if (g[1].defined()) {
      const Tensor from_largest = share_out(g[1], self.get(), largest.get(), shape);
      total = total.defined() ? total + from_largest : from_largest;
    }
    return {total};
  }
};

}  // namespace

void register_extrema_derivatives(Registry& r) {
  derive_all<ExtremeBackward, ops::amax, ops::amin>(r);
  derive<ops::aminmax, AminmaxBackward>(r);
  derive_all<ExtremeOfAllBackward, ops::max, ops::min, ops::median, ops::nanmedian>(r);
  derive_all<SelectAlongBackward, ops::max_dim, ops::min_dim>(r);
}

}  // namespace rush
