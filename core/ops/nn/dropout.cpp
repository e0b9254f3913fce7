#include "core/ops/nn/dropout.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/random/random.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

void check_probability(double p, const char* op) {
  RUSH_CHECK_VALUE(p >= 0 && p <= 1, op, ": dropout probability has to be between 0 and 1, but got ", p);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  constexpr const char* op = "native_dropout";
  check_probability(p, op);
  RUSH_CHECK_TYPE(input.is_floating_point() || input.is_complex(), op, ": expected floating point, got ",
                  input.scalar_type());
  if (p < 1 && train.value_or(true) && mt19937_of({}, input.device())) {  // two operators, as in libtorch
    Tensor noise = empty_like(input);
    bernoulli__float(noise, 1 - p, {});
    return {ops::mul(input, ops::div(noise, detail::wrapped_number(1 - p))), to_dtype(noise, kBool)};
  }
  const Tensor mask = detail::empty_contiguous(input.sizes(), kBool, input.device());
  if (!train.value_or(true) || input.numel() == 0) return {clone_contiguous(input), mask.fill_(1)};
  const Tensor out = detail::empty_contiguous(input.sizes(), input.scalar_type(), input.device());
  if (p == 1) return {out.zero_(), mask.zero_()};
  kernels::dropout(input.device().type, out, mask, contiguous(input), 1 - p, reserve_words({}, input.device(), op));
  return {out, mask};
}

Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  constexpr const char* op = "native_dropout_backward";
  RUSH_CHECK_TYPE(is_integral(mask.scalar_type(), true), op, ": expected a mask of bool or integers, got ",
                  mask.scalar_type());
  // Integers times the scale are of the default dtype, and a mask of integers is one of how often each is kept.
  if (!is_differentiable(grad_output.scalar_type())) {
    return ops::native_dropout_backward(to_dtype(grad_output, get_default_dtype()), mask, scale);
  }
  if (mask.scalar_type() != kBool) {
    return ops::mul(grad_output, ops::mul(to_dtype(mask, grad_output.scalar_type()), detail::wrapped_number(scale)));
  }
  const Tensor inputs[] = {grad_output, mask};
  auto it = TensorIterator::pointwise(op, Tensor(), inputs, Promotion::None);
  kernels::dropout_backward(it.device_type(), it, scale);
  return it.take_output();
}

Tensor dropout(const Tensor& input, double p, bool train) {
  check_probability(p, "dropout");
  if (p == 0 || !train || input.numel() == 0) return input;
  return std::get<0>(ops::native_dropout(input, p, train));
}

// Zeros and ones, one for each element or each channel of `input`.
Tensor keep_noise(const Tensor& input, double p, bool features, const char* op) {
  DimVector sizes(input.sizes());
  if (features) {
    RUSH_CHECK_VALUE(input.dim() >= 2, op, ": expected (N, C, ...), got shape ", input.sizes());
    for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  }
  Tensor noise = empty(sizes, input.options());
  return noise.bernoulli_(1 - p);
}

// What an input is multiplied by and what is added to it; the latter undefined where there is nothing to add.
struct Mapping {
  Tensor factor, offset;
};

Mapping make_mapping(const Tensor& input, double p, bool features, bool alpha, const char* op) {
  if (p == 1) return {zeros({}, input.options()), Tensor()};
  const Tensor noise = keep_noise(input, p, features, op);
  if (!alpha) return {noise.div_(1 - p), Tensor()};
  // a (x m + alpha' (1 - m)) + b with alpha' the limit of SELU, a and b such that mean and deviation are kept.
  constexpr double kLimit = 1.7580993408473766;
  const double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  const Tensor offset = noise.sub(1).mul_(kLimit * a).add_(kLimit * a * p);
  return {noise.mul_(a), offset};
}

template <bool features, bool alpha>
Tensor masked(const Tensor& input, double p, bool train) {
  constexpr const char* op = alpha ? "alpha_dropout" : "feature_dropout";
  check_probability(p, op);
  if (p == 0 || !train || input.numel() == 0) return input;
  const Mapping map = make_mapping(input, p, features, alpha, op);
  const Tensor scaled = input * map.factor;
  return map.offset.defined() ? scaled + map.offset : scaled;
}

template <bool features, bool alpha>
Tensor& masked_(Tensor& self, double p, bool train) {
  constexpr const char* op = alpha ? "alpha_dropout_" : features ? "feature_dropout_" : "dropout_";
  check_probability(p, op);
  if (p == 0 || !train || self.numel() == 0) return self;
  const Mapping map = make_mapping(self, p, features, alpha, op);
  self.mul_(map.factor);
  if (map.offset.defined()) self.add_(map.offset);
  return self;
}

}  // namespace

}  // namespace native

void register_dropout_ops(Registry& r) {
  using native::masked, native::masked_;
  r.native(ops::native_dropout, native::native_dropout);
  r.native(ops::native_dropout_backward, native::native_dropout_backward);
  r.composite(ops::dropout, native::dropout);
  r.composite(ops::dropout_, masked_<false, false>);
  r.composite(ops::feature_dropout, masked<true, false>);
  r.composite(ops::feature_dropout_, masked_<true, false>);
  r.composite(ops::alpha_dropout, masked<false, true>);
  r.composite(ops::alpha_dropout_, masked_<false, true>);
  r.composite(ops::feature_alpha_dropout, masked<true, true>);
  r.composite(ops::feature_alpha_dropout_, masked_<true, true>);
}

}  // namespace rush
