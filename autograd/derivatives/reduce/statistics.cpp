#include "core/ops/reduce/statistics.h"

#include "autograd/derivatives/reduce/reduced_shape.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

// What the four have in common: d var = 2 (x - mean) / (n - correction), d std = d var / (2 std), d mean = 1 / n.
struct MomentsBackward : Node {
  Saved self;
  ReducedShape shape;
  double correction = 1;
  void save(const Tensor& x, OptionalIntArrayRef dim, const std::optional<Scalar>& given, bool) {
    self = x;
    shape.save(x, dim);
    if (given) correction = given->toDouble();
  }
  // The gradient of the input, from that of its variance and that of its mean, each of which may be missing.
  Tensor input_gradient(const Tensor& variance_grad, const Tensor& mean_grad) const {
    Tensor total;
    if (variance_grad.defined()) {
      const Tensor x = self.get();
      const double freedom = std::max(0., static_cast<double>(shape.count) - correction);
      const double scale = x.numel() > 0 ? 2 / freedom : 0;  // infinite, it would make the second derivative NaN
      total = (shape.restore(variance_grad) * scale) * (x - x.mean(shape.dims, true));
    }
    if (mean_grad.defined()) {
      const Tensor each = (shape.restore(mean_grad) / shape.count).expand(shape.sizes);
      total = total.defined() ? total + each : each;
    }
    return total;
  }
};

template <class... Mean>
struct VarianceBackward : MomentsBackward {
  RUSH_SAVED(self)
  Tensors apply(const Tensors& g) override { return {input_gradient(g[0], sizeof...(Mean) > 0 ? g[1] : Tensor())}; }
};
struct VarBackward final : VarianceBackward<> {};
struct VarMeanBackward final : VarianceBackward<Tensor> {};

// 0 where the deviation is 0 and the quotient would not be finite.
Tensor variance_grad(const Tensor& deviation_grad, const Tensor& deviation) {
  if (!deviation_grad.defined()) return deviation_grad;
  return (deviation_grad / (deviation * 2)).masked_fill(deviation.eq(0), 0);
}

template <class... Mean>
struct DeviationBackward : MomentsBackward {
  Saved result;
  RUSH_SAVED(self, result)
  void save_output(const Tensor& deviation, const Mean&...) { result = Saved::output(deviation, this); }
  Tensors apply(const Tensors& g) override {
    return {input_gradient(variance_grad(g[0], result.get()), sizeof...(Mean) > 0 ? g[1] : Tensor())};
  }
};
struct StdBackward final : DeviationBackward<> {};
struct StdMeanBackward final : DeviationBackward<Tensor> {};

}  // namespace

void register_statistics_derivatives(Registry& r) {
  derive<ops::var_correction, VarBackward>(r);
  derive<ops::var_mean_correction, VarMeanBackward>(r);
  derive<ops::std_correction, StdBackward>(r);
  derive<ops::std_mean_correction, StdMeanBackward>(r);
}

}  // namespace rush
