#include "core/ops/pointwise/activation.h"

#include "core/ops/pointwise/ternary.h"
#include "core/ops/register.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

// ---- gelu: two kernels under one operator ----
static bool uses_tanh(std::string_view approximate, const char* op) {
  RUSH_CHECK_VALUE(approximate == "none" || approximate == "tanh", op,
                   ": approximate must be \"none\" or \"tanh\", got \"", approximate, "\"");
  return approximate == "tanh";
}
static Tensor gelu(const Tensor& self, std::string_view approximate) {
  return uses_tanh(approximate, "gelu") ? unary<kernels::gelu_tanh, Promotion::Common>(self)
                                        : unary<kernels::gelu, Promotion::Common>(self);
}
static Tensor& gelu_(Tensor& self, std::string_view approximate) {
  return uses_tanh(approximate, "gelu_") ? unary_<kernels::gelu_tanh, Promotion::Common>(self)
                                         : unary_<kernels::gelu, Promotion::Common>(self);
}
static Tensor gelu_backward(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  return uses_tanh(approximate, "gelu_backward") ? binary<kernels::gelu_tanh_backward, Promotion::Common>(grad, self)
                                                 : binary<kernels::gelu_backward, Promotion::Common>(grad, self);
}

// ---- the relu family ----
static Tensor leaky_relu_backward(const Tensor& grad, const Tensor& self, const Scalar& slope, bool is_result) {
  RUSH_CHECK_VALUE(!is_result || slope.toDouble() >= 0,
                   "leaky_relu_backward: with a negative slope the result does not tell the input's sign; do not call "
                   "leaky_relu_ in place");
  return binary<kernels::leaky_relu_backward, Promotion::Common, const Scalar&>(grad, self, slope);
}

static Tensor elu_backward(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                           bool is_result, const Tensor& self) {
  if (!is_result) {
    return binary<kernels::elu_backward, Promotion::Common, const Scalar&, const Scalar&, const Scalar&>(
        grad, self, alpha, scale, input_scale);
  }
  RUSH_CHECK_VALUE(alpha.toDouble() >= 0,
                   "elu_backward: with a negative alpha the result does not tell the input's sign; do not call elu_ in "
                   "place");
  return binary<kernels::elu_backward_from_result, Promotion::Common, const Scalar&, const Scalar&, const Scalar&>(
      grad, self, alpha, scale, input_scale);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;
static Tensor selu(const Tensor& self) { return ops::elu(self, kSeluAlpha, kSeluScale, 1); }
static Tensor& selu_(Tensor& self) { return ops::elu_(self, kSeluAlpha, kSeluScale, 1); }

static Scalar inverse(const Scalar& alpha, const char* op) {
  RUSH_CHECK_VALUE(!alpha.equal(0), op, ": alpha must not be 0");
  return 1 / alpha.toDouble();
}
static Tensor celu(const Tensor& self, const Scalar& alpha) {
  return ops::elu(self, alpha, 1.0, inverse(alpha, "celu"));
}
static Tensor& celu_(Tensor& self, const Scalar& alpha) { return ops::elu_(self, alpha, 1.0, inverse(alpha, "celu_")); }

static std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  // Other backends may keep an intermediate result; these compute it again.
  return {unary<kernels::log_sigmoid, Promotion::Common>(self),
          detail::empty_contiguous({0}, self.scalar_type(), self.device())};
}
static Tensor log_sigmoid(const Tensor& self) { return std::get<0>(ops::log_sigmoid_forward(self)); }
static Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor& /*buffer*/) {
  return binary<kernels::log_sigmoid_backward, Promotion::Common>(grad, self);
}

static void check_hardtanh(const Tensor& self, const Scalar& min, const Scalar& max, const char* op) {
  RUSH_CHECK_TYPE(self.scalar_type() != kBool && !self.is_complex(), op, ": not defined on ", self.scalar_type());
  RUSH_CHECK_VALUE(min.toDouble() <= max.toDouble(), op, ": min_val ", min, " is above max_val ", max);
  RUSH_CHECK_TYPE(self.scalar_type() != kUInt8 || (min.toDouble() >= 0 && max.toDouble() >= 0), op,
                  ": uint8 holds no negative bound");
}
// The result has the input's dtype, whatever the bounds are.
static Tensor hardtanh(const Tensor& self, const Scalar& min, const Scalar& max) {
  check_hardtanh(self, min, max, "hardtanh");
  return unary<kernels::clamp_scalar, Promotion::None, const OptionalScalar&, const OptionalScalar&>(self, min, max);
}
static Tensor& hardtanh_(Tensor& self, const Scalar& min, const Scalar& max) {
  check_hardtanh(self, min, max, "hardtanh_");
  return unary_<kernels::clamp_scalar, Promotion::None, const OptionalScalar&, const OptionalScalar&>(self, min, max);
}
static Tensor relu6(const Tensor& self) { return ops::hardtanh(self, 0, 6); }
static Tensor& relu6_(Tensor& self) { return ops::hardtanh_(self, 0, 6); }

static Tensor softshrink(const Tensor& self, const Scalar& lambd) {
  RUSH_CHECK_VALUE(lambd.toDouble() >= 0, "softshrink: lambd must not be negative, got ", lambd);
  return unary<kernels::softshrink, Promotion::Common, const Scalar&>(self, lambd);
}

// ---- glu ----
static Tensor half_of(const Tensor& self, int64_t dim, int64_t which) {
  DimVector sizes(self.sizes());
  sizes[dim] /= 2;
  return detail::make_view(self, sizes, self.strides(),
                           self.storage_offset() + which * sizes[dim] * self.strides()[dim]);
}
static int64_t check_glu(const Tensor& self, int64_t dim, const char* op) {
  RUSH_CHECK_VALUE(self.dim() > 0, op, ": a 0-dimensional tensor has no dimension to halve");
  dim = wrap_dim(dim, self.dim(), op);
  RUSH_CHECK_VALUE(self.size(dim) % 2 == 0, op, ": dimension ", dim, " must be even to be halved, its size is ",
                   self.size(dim));
  return dim;
}
static Tensor glu(const Tensor& self, int64_t dim) {
  dim = check_glu(self, dim, "glu");
  return binary<kernels::glu, Promotion::Common>(half_of(self, dim, 0), half_of(self, dim, 1));
}
static Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  dim = check_glu(self, dim, "glu_backward");
  const Tensor a = half_of(self, dim, 0), b = half_of(self, dim, 1);
  RUSH_CHECK_VALUE(grad.sizes() == a.sizes(), "glu_backward: expected a gradient of shape ", a.sizes(), ", got ",
                   grad.sizes());
  const Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  auto of_a = TensorIterator::pointwise("glu_backward", half_of(out, dim, 0), {&grad, &b}, Promotion::Common);
  kernels::glu_backward_a(of_a.device_type(), of_a);
  of_a.finish();
  auto of_b = TensorIterator::pointwise("glu_backward", half_of(out, dim, 1), {&grad, &a, &b}, Promotion::Common);
  kernels::glu_backward_b(of_b.device_type(), of_b);
  of_b.finish();
  return out;
}

// ---- prelu ----
static Tensor prelu(const Tensor& self, const Tensor& weight) {
  RUSH_CHECK_TYPE(self.scalar_type() == weight.scalar_type(), "prelu: expected a weight of dtype ", self.scalar_type(),
                  ", got ", weight.scalar_type());
  RUSH_CHECK_VALUE(weight.dim() <= 1, "prelu: expected a weight of 0 or 1 dimensions, got shape ", weight.sizes());
  if (weight.numel() == 1) {
    return ops::_prelu_kernel(self, weight.dim() == 0 ? weight : weight.reshape(DimVector(self.dim() ? 1 : 0, 1)));
  }
  RUSH_CHECK_VALUE(self.dim() > 0, "prelu: a 0-dimensional tensor takes one weight, got ", weight.numel());
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  RUSH_CHECK_VALUE(channels == weight.numel(), "prelu: expected one weight or ", channels,
                   " as there are channels, got ", weight.numel());
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  shape[1] = channels;
  return ops::_prelu_kernel(self, weight.reshape(shape));
}
static std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& self, const Tensor& weight) {
  auto of_self = TensorIterator::pointwise("prelu_backward", Tensor(), {&grad, &self, &weight}, Promotion::Common);
  kernels::prelu_backward_self(of_self.device_type(), of_self);
  return {of_self.take_output(), binary<kernels::prelu_backward_weight, Promotion::Common>(grad, self)};
}

}  // namespace native

void register_activation_ops(Registry& r) {
  native::register_activation_fronts(r);
  r.native(ops::gelu, native::gelu);
  r.native(ops::gelu_, native::gelu_);
  r.native(ops::gelu_backward, native::gelu_backward);
  r.native(ops::leaky_relu_backward, native::leaky_relu_backward);
  r.native(ops::elu_backward, native::elu_backward);
  r.composite(ops::selu, native::selu);
  r.composite(ops::selu_, native::selu_);
  r.composite(ops::celu, native::celu);
  r.composite(ops::celu_, native::celu_);
  r.composite(ops::log_sigmoid, native::log_sigmoid);
  r.native(ops::log_sigmoid_forward, native::log_sigmoid_forward);
  r.native(ops::log_sigmoid_backward, native::log_sigmoid_backward);
  r.native(ops::hardtanh, native::hardtanh);
  r.native(ops::hardtanh_, native::hardtanh_);
  r.composite(ops::relu6, native::relu6);
  r.composite(ops::relu6_, native::relu6_);
  r.native(ops::softshrink, native::softshrink);
  r.native(ops::glu, native::glu);
  r.native(ops::glu_backward, native::glu_backward);
  r.composite(ops::prelu, native::prelu);
  r.native(ops::_prelu_kernel_backward, native::prelu_backward);
}

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training) {
  RUSH_CHECK_NOT_IMPLEMENTED(!training, "rrelu: random slopes in training are not implemented");
  return leaky_relu(self, (lower.toDouble() + upper.toDouble()) / 2);
}

Tensor Tensor::relu() const { return ops::relu(*this); }
Tensor& Tensor::relu_() const { return ops::relu_(self()); }
Tensor Tensor::prelu(const Tensor& weight) const { return ops::prelu(*this, weight); }
Tensor Tensor::hardshrink(const Scalar& lambd) const { return ops::hardshrink(*this, lambd); }

}  // namespace rush
