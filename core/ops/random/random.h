// Random numbers. See Note [One random stream] in core/philox.h: for one seed the same on every device, whatever the
// strides and the number of threads.
#pragma once
#include "core/device/generator.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

using OptionalGenerator = std::optional<Generator>;

#define RUSH_RANDOM_SCHEMA(args, ending) "(Tensor(a!) self" args ", *, Generator? generator=None) -> " ending

namespace ops {
inline constinit Op<Tensor&(Tensor&, double, double, const OptionalGenerator&)> uniform_{
    "aten::uniform_" RUSH_RANDOM_SCHEMA(", float from=0., float to=1.", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, double, const OptionalGenerator&)> normal_{
    "aten::normal_" RUSH_RANDOM_SCHEMA(", float mean=0., float std=1.", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, double, const OptionalGenerator&)> log_normal_{
    "aten::log_normal_" RUSH_RANDOM_SCHEMA(", float mean=1., float std=2.", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, double, const OptionalGenerator&)> cauchy_{
    "aten::cauchy_" RUSH_RANDOM_SCHEMA(", float median=0., float sigma=1.", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, const OptionalGenerator&)> exponential_{
    "aten::exponential_" RUSH_RANDOM_SCHEMA(", float lambd=1.", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, const OptionalGenerator&)> geometric_{
    "aten::geometric_" RUSH_RANDOM_SCHEMA(", float p", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, const OptionalGenerator&)> random_{
    "aten::random_" RUSH_RANDOM_SCHEMA("", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, int64_t, const OptionalGenerator&)> random__to{
    "aten::random_.to" RUSH_RANDOM_SCHEMA(", int to", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, int64_t, std::optional<int64_t>, const OptionalGenerator&)> random__from{
    "aten::random_.from" RUSH_RANDOM_SCHEMA(", int from, int? to", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, double, const OptionalGenerator&)> bernoulli__float{
    "aten::bernoulli_.float" RUSH_RANDOM_SCHEMA(", float p=0.5", "Tensor(a!)")};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const OptionalGenerator&)> bernoulli_{
    "aten::bernoulli_.Tensor" RUSH_RANDOM_SCHEMA(", Tensor p", "Tensor(a!)")};
inline constinit Op<Tensor(const Tensor&, const OptionalGenerator&)> bernoulli{
    "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, double, const OptionalGenerator&)> bernoulli_p{
    "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, double, const OptionalGenerator&)> normal_Tensor_float{
    "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor"};
inline constinit Op<Tensor(double, const Tensor&, const OptionalGenerator&)> normal_float_Tensor{
    "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const OptionalGenerator&)> normal_Tensor_Tensor{
    "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, bool, const OptionalGenerator&)> multinomial{
    "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
    "Tensor",
    {Tag::AnyDevice}};
}  // namespace ops

/// Fills `self` with numbers uniform in [from, to). Integers of `random_` lie in [from, to); without bounds from 0 up
/// to the largest that the dtype holds exactly. All operators of this family take the device's default generator unless
/// they are given one, throw TypeError for a dtype that cannot hold the numbers and ValueError for parameters out of
/// range, and then leave `self` and the generator as they were.
inline Tensor bernoulli(const Tensor& self, const OptionalGenerator& generator = std::nullopt) {
  return ops::bernoulli(self, generator);
}
/// Like `self`, of zeros and ones; one with probability `p`. Without it, self holds each element's probability.
inline Tensor bernoulli(const Tensor& self, double p, const OptionalGenerator& generator = std::nullopt) {
  return ops::bernoulli_p(self, p, generator);
}
/// Normal numbers of this mean and standard deviation, element by element where they are tensors.
inline Tensor normal(const Tensor& mean, double std = 1, const OptionalGenerator& generator = std::nullopt) {
  return ops::normal_Tensor_float(mean, std, generator);
}
inline Tensor normal(double mean, const Tensor& std, const OptionalGenerator& generator = std::nullopt) {
  return ops::normal_float_Tensor(mean, std, generator);
}
inline Tensor normal(const Tensor& mean, const Tensor& std, const OptionalGenerator& generator = std::nullopt) {
  return ops::normal_Tensor_Tensor(mean, std, generator);
}
/// `num_samples` indices of each row of weights (n) or (m, n), which need not sum to one: (num_samples) or
/// (m, num_samples), int64. Without replacement no index comes twice. Throws ValueError for weights that are negative,
/// not finite or all zero, and for more samples than weights above zero.
inline Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement = false,
                          const OptionalGenerator& generator = std::nullopt) {
  return ops::multinomial(self, num_samples, replacement, generator);
}

namespace kernels {
// `out` is row-major; element i takes the words of `reserved` that the Note gives it.
inline constinit Kernel<void(const Tensor& out, double from, double to, const PhiloxState& reserved)> uniform{
    "uniform_"};
inline constinit Kernel<void(const Tensor&out, double mean, double std, const PhiloxState&reserved)> normal{"normal_"},
    log_normal{"log_normal_"}, cauchy{"cauchy_"};
inline constinit Kernel<void(const Tensor&out, double parameter, const PhiloxState&reserved)> exponential{
    "exponential_"},
    geometric{"geometric_"}, bernoulli{"bernoulli_"};
// `p` is row-major, of out's shape, float32 or float64. Throws ValueError for a probability outside [0, 1].
inline constinit Kernel<void(const Tensor& out, const Tensor& p, const PhiloxState& reserved)> bernoulli_tensor{
    "bernoulli_"};
// from + an integer below `range`; all 2^64 when `range` is 0.
inline constinit Kernel<void(const Tensor& out, int64_t from, uint64_t range, const PhiloxState& reserved)> random{
    "random_"};
// out (m, num_samples), weights (m, n) row-major.
inline constinit Kernel<void(const Tensor& out, const Tensor& weights, bool replacement, const PhiloxState& reserved)>
    multinomial{"multinomial"};

// The same by Note [libtorch's random numbers], for the CPU. `out` is dense; its elements are drawn for in the order in
// which they lie in memory.
namespace mt19937 {
using Twister = Mt19937GeneratorImpl;
inline constinit Kernel<void(const Tensor&out, double, double, Twister*)> uniform{"uniform_"}, normal{"normal_"},
    log_normal{"log_normal_"}, cauchy{"cauchy_"};
inline constinit Kernel<void(const Tensor&out, double, Twister*)> exponential{"exponential_"}, geometric{"geometric_"},
    bernoulli{"bernoulli_"};
inline constinit Kernel<void(const Tensor& out, const Tensor& p, Twister*)> bernoulli_tensor{"bernoulli_"};
inline constinit Kernel<void(const Tensor& out, int64_t from, uint64_t range, Twister*)> random{"random_"};
inline constinit Kernel<void(const Tensor& out, Twister*)> randperm{"randperm"};
inline constinit Kernel<void(const Tensor& out, const Tensor& weights, bool replacement, Twister*)> multinomial{
    "multinomial"};
}  // namespace mt19937
}  // namespace kernels

namespace native {
// The words that a kernel draws from: 4 of every subsequence, from `generator` or the device's own. Throws ValueError
// when the generator belongs to another device.
PhiloxState reserve_words(const OptionalGenerator& generator, Device device, const char* op);
// `generator`, or the device's own, if it is of libtorch's stream; else null.
Mt19937GeneratorImpl* mt19937_of(const OptionalGenerator& generator, Device device);
// Below autograd.
Tensor& uniform_(Tensor& self, double from, double to, const OptionalGenerator& generator);
Tensor& normal_(Tensor& self, double mean, double std, const OptionalGenerator& generator);
Tensor& random__from(Tensor& self, int64_t from, std::optional<int64_t> to, const OptionalGenerator& generator);
Tensor& bernoulli__float(Tensor& self, double p, const OptionalGenerator& generator);
}  // namespace native

}  // namespace rush
