// Variance and standard deviation.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
#define RUSH_STATISTIC(name, Result, results)                                                                  \
  inline constinit Op<Result(const Tensor&, bool)> name{"aten::" #name                                         \
                                                        "(Tensor self, bool unbiased=True) -> " results};      \
  inline constinit Op<Result(const Tensor&, OptionalIntArrayRef, bool, bool)> name##_dim{                      \
      "aten::" #name ".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> " results};    \
  inline constinit Op<Result(const Tensor&, OptionalIntArrayRef, const std::optional<Scalar>&, bool)>          \
      name##_correction{"aten::" #name                                                                         \
                        ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=" \
                        "False) -> " results};
#define RUSH_TWO_TENSORS std::tuple<Tensor, Tensor>
RUSH_STATISTIC(var, Tensor, "Tensor")
RUSH_STATISTIC(std, Tensor, "Tensor")
RUSH_STATISTIC(var_mean, RUSH_TWO_TENSORS, "(Tensor, Tensor)")
RUSH_STATISTIC(std_mean, RUSH_TWO_TENSORS, "(Tensor, Tensor)")
#undef RUSH_STATISTIC
}  // namespace ops

#define RUSH_STATISTIC(name, Result)                                                                                \
  inline Result name(const Tensor& self, TruthValue auto unbiased) { return ops::name(self, unbiased); }            \
  inline Result name(const Tensor& self, OptionalIntArrayRef dim, TruthValue auto unbiased, bool keepdim = false) { \
    return ops::name##_dim(self, dim, unbiased, keepdim);                                                           \
  }                                                                                                                 \
  inline Result name(const Tensor& self, OptionalIntArrayRef dim = std::nullopt,                                    \
                     const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false) {                \
    return ops::name##_correction(self, dim, correction, keepdim);                                                  \
  }
/// The variance over all dimensions or the given ones: the sum of squared distances from the mean over n - correction.
/// `correction` defaults to 1, `unbiased` means 1 or 0. NaN or infinite where n - correction is not positive. Of a
/// complex tensor it is real: the sum of the variances of the parts. Throws TypeError for integers and bool. A number
/// is a dimension, never `unbiased`: see Note [Overloads that a literal chooses].
RUSH_STATISTIC(var, Tensor)
/// The square root of the variance.
RUSH_STATISTIC(std, Tensor)
/// (variance, mean), in one pass.
RUSH_STATISTIC(var_mean, RUSH_TWO_TENSORS)
/// (standard deviation, mean).
RUSH_STATISTIC(std_mean, RUSH_TWO_TENSORS)
#undef RUSH_STATISTIC
#undef RUSH_TWO_TENSORS

namespace kernels {
// Variance (its root, where `root`) and mean over `dims`, as kernels::sum takes them; `mean` may be undefined.
inline constinit Kernel<void(const Tensor& variance, const Tensor& mean, const Tensor& input, IntArrayRef dims,
                             double correction, bool root)>
    moments{"var"};
}  // namespace kernels

}  // namespace rush
