#include "core/ops/reduce/statistics.h"

#include "core/error/warning.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/register.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

using TensorPair = std::tuple<Tensor, Tensor>;

static double correction_of(const std::optional<Scalar>& correction) { return correction ? correction->toDouble() : 1; }

// The parts of a complex number vary on their own: their variances add up.
static TensorPair complex_moments(const Tensor& self, const Reduction& reduction, double correction, bool root,
                                  bool with_mean) {
  const ScalarType real = to_real(self.scalar_type());
  DimVector part_sizes(reduction.kept);
  part_sizes.push_back(2);
  const Tensor parts = detail::empty_contiguous(part_sizes, real, self.device());
  const Tensor variance = reduction.allocate(self, real);
  kernels::moments(self.device().type, parts, Tensor(), ops::view_as_real(self), reduction.dims, correction, root);
  part_sizes[part_sizes.size() - 1] = 1;
  variance.impl()->set_contiguous(part_sizes);
  if (root) {  // the parts' deviations add up as the sides of a right triangle
    kernels::vector_norm(self.device().type, variance, parts, self.dim(), 2);
  } else {
    kernels::sum(self.device().type, variance, parts, self.dim());
  }
  Tensor mean;
  if (with_mean) {
    mean = reduction.allocate(self, self.scalar_type());
    kernels::mean(self.device().type, mean, self, reduction.dims);
    mean = reduction.finish(mean);
  }
  return {reduction.finish(variance), mean};
}

// As PyTorch warns: n values vary with n - correction degrees of freedom.
static void warn_of_few_values(const char* op, const Tensor& self, const Tensor& variance, double correction) {
  if (variance.numel() == 0 || correction < static_cast<double>(self.numel() / variance.numel())) return;
  RUSH_WARN_ONCE_PER_CALLER(op, ": a correction of ", correction, " leaves ", self.numel() / variance.numel(),
                            " values without degrees of freedom: the result is nan or infinite");
}

static TensorPair moments(const char* op, const Tensor& self, OptionalIntArrayRef dim, double correction, bool keepdim,
                          bool root, bool with_mean) {
  RUSH_CHECK_TYPE(self.is_floating_point() || self.is_complex(), op, ": expected a floating or complex tensor, got ",
                  self.scalar_type());
  const Reduction reduction(op, self, dim, keepdim);
  if (self.is_complex()) return complex_moments(self, reduction, correction, root, with_mean);
  const Tensor variance = reduction.allocate(self, self.scalar_type());
  warn_of_few_values(op, self, variance, correction);
  const Tensor mean = with_mean ? reduction.allocate(self, self.scalar_type()) : Tensor();
  kernels::moments(self.device().type, variance, mean, self, reduction.dims, correction, root);
  return {reduction.finish(variance), with_mean ? reduction.finish(mean) : mean};
}

template <bool root>
static Tensor var_or_std(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                         bool keepdim) {
  return std::get<0>(moments(root ? "std" : "var", self, dim, correction_of(correction), keepdim, root, false));
}
template <bool root>
static TensorPair var_or_std_mean(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                                  bool keepdim) {
  return moments(root ? "std_mean" : "var_mean", self, dim, correction_of(correction), keepdim, root, true);
}

template <auto& op, class R>
static R unbiased_all(const Tensor& self, bool unbiased) {
  return op(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
template <auto& op, class R>
static R unbiased_dim(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return op(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}

}  // namespace native

void register_statistics_ops(Registry& r) {
#define RUSH_REGISTER_STATISTIC(name, function, Result)                         \
  r.native(ops::name##_correction, native::function);                           \
  r.composite(ops::name, native::unbiased_all<ops::name##_correction, Result>); \
  r.composite(ops::name##_dim, native::unbiased_dim<ops::name##_correction, Result>);
  RUSH_REGISTER_STATISTIC(var, var_or_std<false>, Tensor)
  RUSH_REGISTER_STATISTIC(std, var_or_std<true>, Tensor)
  RUSH_REGISTER_STATISTIC(var_mean, var_or_std_mean<false>, native::TensorPair)
  RUSH_REGISTER_STATISTIC(std_mean, var_or_std_mean<true>, native::TensorPair)
#undef RUSH_REGISTER_STATISTIC
}

#define RUSH_STATISTIC_METHOD(name)                                                                           \
  Tensor Tensor::name(TruthValue auto unbiased) const { return ops::name(*this, unbiased); }                  \
  template Tensor Tensor::name(bool) const;                                                                   \
  Tensor Tensor::name(OptionalIntArrayRef dim, TruthValue auto unbiased, bool keepdim) const {                \
    return ops::name##_dim(*this, dim, unbiased, keepdim);                                                    \
  }                                                                                                           \
  template Tensor Tensor::name(OptionalIntArrayRef, bool, bool) const;                                        \
  Tensor Tensor::name(OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim) const { \
    return ops::name##_correction(*this, dim, correction, keepdim);                                           \
  }
RUSH_STATISTIC_METHOD(var)
RUSH_STATISTIC_METHOD(std)
#undef RUSH_STATISTIC_METHOD

}  // namespace rush
