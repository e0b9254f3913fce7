// Second names that ATen has for operators. Note [Operators of libtorch alone]
// What ATen has beyond our operators stands in the headers beside this one: second names, and functions that other
// operators make in a few lines, whose derivatives follow from theirs. `aten` is an inline namespace of rush, so that
// torch::, at:: and argument-dependent lookup find these functions as they find rush's, and only in programs that
// include libtorch's headers.
#pragma once
#include <rushlight.h>

#include "core/ops/nn/cudnn_rnn.h"

namespace rush {
inline namespace aten {

// ---- element-wise ----
#define RUSH_UNARY_NAME(second, first)                              \
  inline Tensor second(const Tensor& self) { return self.first(); } \
  inline Tensor& second##_(Tensor& self) { return self.first##_(); }
RUSH_UNARY_NAME(arccos, acos)
RUSH_UNARY_NAME(arccosh, acosh)
RUSH_UNARY_NAME(arcsin, asin)
RUSH_UNARY_NAME(arcsinh, asinh)
RUSH_UNARY_NAME(arctan, atan)
RUSH_UNARY_NAME(arctanh, atanh)
RUSH_UNARY_NAME(fix, trunc)
RUSH_UNARY_NAME(negative, neg)
#undef RUSH_UNARY_NAME

#define RUSH_COMPARISON_NAME(second, first)                                                   \
  inline Tensor second(const Tensor& self, const Tensor& other) { return self.first(other); } \
  inline Tensor second(const Tensor& self, const Scalar& other) { return self.first(other); }
RUSH_COMPARISON_NAME(greater, gt)
RUSH_COMPARISON_NAME(greater_equal, ge)
RUSH_COMPARISON_NAME(less, lt)
RUSH_COMPARISON_NAME(less_equal, le)
RUSH_COMPARISON_NAME(not_equal, ne)
#undef RUSH_COMPARISON_NAME

inline Tensor arctan2(const Tensor& self, const Tensor& other) { return self.atan2(other); }
/// self * 2^other, as a floating point number.
inline Tensor ldexp(const Tensor& self, const Tensor& other) {
  const ScalarType common = result_type(self, other);
  const Tensor out = self.mul(rush::pow(2.0, other));
  return is_integral(common, true) ? out : out.to(common);
}
inline Tensor& ldexp_(Tensor& self, const Tensor& other) { return self.mul_(rush::pow(2.0, other)); }

namespace aten_detail {
// Of a float32 or float64 tensor: where its bits have the exponent, and what the exponent of 1 is there.
struct FloatFormat {
  ScalarType bits;
  int64_t fraction, bias;
};
inline FloatFormat format_of(ScalarType dtype) {
  return dtype == kFloat64 ? FloatFormat{kInt64, 52, 1023} : FloatFormat{kInt32, 23, 127};
}
// 2^exponent, exactly, for an integer tensor of exponents of normal numbers.
inline Tensor power_of_two(const Tensor& exponent, ScalarType dtype) {
  const FloatFormat format = format_of(dtype);
  return exponent.to(format.bits).add(format.bias).bitwise_left_shift(format.fraction).view(dtype);
}
}  // namespace aten_detail

/// (mantissa, exponent) with self = mantissa * 2^exponent and 1/2 <= |mantissa| < 1; of 0, infinity and NaN themselves
/// and 0. The exponent is int32.
inline std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  RUSH_CHECK_TYPE(self.is_floating_point(), "frexp: needs floating point, got ", self.scalar_type());
  const ScalarType dtype = self.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
  const aten_detail::FloatFormat format = aten_detail::format_of(dtype);
  const Tensor x = self.to(dtype), value = x.detach().contiguous();
  const Tensor special = value.eq(0).logical_or(value.isfinite().logical_not());
  // Numbers below the normal ones are first multiplied by 2^64.
  const Tensor small = value.abs().lt(std::exp2(2.0 - static_cast<double>(format.bias)));
  const Tensor shift = small.to(kInt64).mul(64);
  const Tensor bits = value.mul(aten_detail::power_of_two(shift, dtype)).view(format.bits);
  const Tensor field = bits.bitwise_right_shift(format.fraction).bitwise_and(2 * format.bias + 1).to(kInt64);
  const Tensor exponent = field.sub(format.bias - 1).sub(shift).masked_fill(special, 0);
  const Tensor half = exponent.div(2, "trunc");  // 2^-exponent alone may overflow
  const Tensor mantissa =
      x.mul(aten_detail::power_of_two(half.neg(), dtype)).mul(aten_detail::power_of_two(half.sub(exponent), dtype));
  return {mantissa.to(self.scalar_type()), exponent.to(kInt32)};
}

// ---- Fourier transforms ----
#define RUSH_FFT_NAMES(name)                                                                                        \
  inline Tensor fft_##name(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,           \
                           std::optional<std::string_view> norm = std::nullopt) {                                   \
    return fft::name(self, n, dim, norm);                                                                           \
  }                                                                                                                 \
  inline Tensor fft_##name##2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, \
                              std::optional<std::string_view> norm = std::nullopt) {                                \
    return fft::name##2(self, s, dim, norm);                                                                        \
  }                                                                                                                 \
  inline Tensor fft_##name##n(const Tensor& self, OptionalIntArrayRef s = std::nullopt,                             \
                              OptionalIntArrayRef dim = std::nullopt,                                               \
                              std::optional<std::string_view> norm = std::nullopt) {                                \
    return fft::name##n(self, s, dim, norm);                                                                        \
  }
RUSH_FFT_NAMES(fft)
RUSH_FFT_NAMES(ifft)
RUSH_FFT_NAMES(rfft)
RUSH_FFT_NAMES(irfft)
RUSH_FFT_NAMES(hfft)
RUSH_FFT_NAMES(ihfft)
#undef RUSH_FFT_NAMES
inline Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return fft::fftshift(self, dim);
}
inline Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return fft::ifftshift(self, dim);
}
inline Tensor fft_fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {}) {
  return fft::fftfreq(n, d, options);
}
inline Tensor fft_fftfreq(int64_t n, const TensorOptions& options) { return fft::fftfreq(n, options); }
inline Tensor fft_rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {}) {
  return fft::rfftfreq(n, d, options);
}
inline Tensor fft_rfftfreq(int64_t n, const TensorOptions& options) { return fft::rfftfreq(n, options); }

// ---- convolutions, padding and samplers, each of one number of dimensions ----
#define RUSH_PAD_NAMES(mode)                                                                                       \
  inline Tensor mode##_pad1d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad1d(self, padding); } \
  inline Tensor mode##_pad2d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad2d(self, padding); } \
  inline Tensor mode##_pad3d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad3d(self, padding); }
RUSH_PAD_NAMES(reflection)
RUSH_PAD_NAMES(replication)
#undef RUSH_PAD_NAMES
inline Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0,
                           std::string_view padding_side = "right") {
  return nn::utils::rnn::pad_sequence(sequences, batch_first, padding_value, padding_side);
}
inline Tensor native_channel_shuffle(const Tensor& self, int64_t groups) { return channel_shuffle(self, groups); }
inline Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners) {
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}
inline Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners) {
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}
// PyTorch's slow_ and thnn_ convolutions are its methods without a library for them; the results are conv's.
inline Tensor thnn_conv2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                          const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0) {
  return conv2d(self, weight, bias, stride, padding);
}
inline Tensor slow_conv3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                          const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0) {
  return conv3d(self, weight, bias, stride, padding);
}
inline Tensor slow_conv3d_forward(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                                  const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding) {
  return slow_conv3d(self, weight, kernel_size, bias, stride, padding);
}
inline Tensor slow_conv_dilated2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                                  const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef dilation = 1) {
  return conv2d(self, weight, bias, stride, padding, dilation);
}
inline Tensor slow_conv_dilated3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                                  const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef dilation = 1) {
  return conv3d(self, weight, bias, stride, padding, dilation);
}
inline Tensor conv_depthwise3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                               const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                               IntArrayRef dilation) {
  return conv3d(self, weight, bias, stride, padding, dilation, self.size(1));
}
inline Tensor slow_conv_transpose2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                                    const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                    IntArrayRef padding = 0, IntArrayRef output_padding = 0, IntArrayRef dilation = 1) {
  return conv_transpose2d(self, weight, bias, stride, padding, output_padding, 1, dilation);
}
inline Tensor slow_conv_transpose3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                                    const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                    IntArrayRef padding = 0, IntArrayRef output_padding = 0, IntArrayRef dilation = 1) {
  return conv_transpose3d(self, weight, bias, stride, padding, output_padding, 1, dilation);
}
/// (T, B, C_in) with weight (K, C_in, C_out) -> (T + 2 pad - K + 1, B, C_out).
inline Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad = 0) {
  return conv1d(self.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, 1, pad).permute({2, 0, 1});
}

// ---- losses and the like, with what their derivatives need ----
inline std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                                   const std::optional<Tensor>& weight, int64_t reduction,
                                                   int64_t ignore_index) {
  return ops::nll_loss_forward(self, target, weight, reduction, ignore_index);
}
inline std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target,
                                                     const std::optional<Tensor>& weight, int64_t reduction,
                                                     int64_t ignore_index) {
  return ops::nll_loss2d_forward(self, target, weight, reduction, ignore_index);
}
inline std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) { return ops::log_sigmoid_forward(self); }

/// (the loss, where each element of self is a target): the targets of a sample end before its first -1.
inline std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target,
                                                                 int64_t reduction) {
  RUSH_CHECK_VALUE(self.dim() >= 1, "multilabel_margin_loss_forward: needs a dimension of classes");
  const Tensor unused = target.lt(0).cumsum(-1).gt(0);
  const Tensor index = target.masked_fill(unused, self.size(-1));  // a column that is cut off
  std::vector<int64_t> sizes = self.sizes().vec();
  ++sizes.back();
  const Tensor marked = zeros(sizes, self.options()).scatter_(-1, index, 1);
  return {multilabel_margin_loss(self, target, reduction), marked.narrow(-1, 0, self.size(-1))};
}

/// The derivative of glu(x) = a sigmoid(b) in the direction dx; (a, b) are the halves of x along `dim`.
inline Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const std::vector<Tensor> direction = dx.chunk(2, dim);
  const Tensor gate = x.chunk(2, dim)[1].sigmoid();
  return direction[0].mul(gate).add(glu.mul(direction[1]).mul(gate.neg().add(1)));
}
/// The rows of an embedding that `indices` name are scaled down to the p-norm `max_norm` where theirs is larger.
inline Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  const Tensor rows = std::get<0>(_unique2(indices.flatten()));
  const Tensor selected = self.index_select(0, rows);
  const Tensor norms = selected.norm(norm_type, 1, true);
  const Tensor scales = where(norms.gt(max_norm), norms.add(1e-7).reciprocal().mul(max_norm), ones_like(norms));
  return self.index_copy_(0, rows, selected.mul(scales));
}
inline Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  Tensor out = self.clone();
  return embedding_renorm_(out, indices, max_norm, norm_type);
}

// ---- random numbers, in a new tensor of self's shape ----
#define RUSH_FRESH_RANDOM(name, declared, passed)                                                           \
  inline Tensor name(const Tensor& self, RUSH_UNPACKED declared, const OptionalGenerator& generator = {}) { \
    return empty_like(self).name##_(RUSH_UNPACKED passed, generator);                                       \
  }
#define RUSH_UNPACKED(...) __VA_ARGS__
RUSH_FRESH_RANDOM(cauchy, (double median = 0, double sigma = 1), (median, sigma))
RUSH_FRESH_RANDOM(exponential, (double lambd = 1), (lambd))
RUSH_FRESH_RANDOM(geometric, (double p), (p))
RUSH_FRESH_RANDOM(log_normal, (double mean = 1, double std = 2), (mean, std))
RUSH_FRESH_RANDOM(random, (int64_t from, std::optional<int64_t> to), (from, to))
RUSH_FRESH_RANDOM(random, (int64_t to), (to))
RUSH_FRESH_RANDOM(uniform, (double from = 0, double to = 1), (from, to))
#undef RUSH_FRESH_RANDOM
#undef RUSH_UNPACKED
inline Tensor random(const Tensor& self, const OptionalGenerator& generator = {}) {
  return empty_like(self).random_(generator);
}

// ---- other ----
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }
inline bool is_same_size(const Tensor& self, const Tensor& other) { return self.is_same_size(other); }
inline bool is_distributed(const Tensor& /*self*/) { return false; }
inline bool cudnn_is_acceptable(const Tensor& self) { return ops::cudnn_is_acceptable(self); }
inline bool is_vulkan_available() { return false; }
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
inline int64_t stride(const Tensor& self, int64_t dim) { return self.stride(dim); }
inline Tensor& zero_(Tensor& self) { return self.zero_(); }
inline Tensor zero(const Tensor& self) { return zeros_like(self); }
inline Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking = false) {
  return self.clone().copy_(src, non_blocking);
}
inline const Tensor& resize_as_(const Tensor& self, const Tensor& the_template,
                                std::optional<MemoryFormat> memory_format = std::nullopt) {
  return self.resize_as_(the_template, memory_format);
}
inline Tensor resize(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format = std::nullopt) {
  return self.detach().clone().resize_(size, memory_format);
}
inline Tensor set(const Tensor& self, const Tensor& source) { return self.detach().clone().set_(source); }
inline Tensor set(const Tensor& self) { return self.detach().clone().set_(); }
inline Tensor resize_as(const Tensor& self, const Tensor& the_template,
                        std::optional<MemoryFormat> memory_format = std::nullopt) {
  return resize(self, the_template.sizes(), memory_format);
}
// Conjugates and negatives are computed at once here: no tensor has them pending.
inline Tensor resolve_conj(const Tensor& self) { return self; }
inline Tensor resolve_neg(const Tensor& self) { return self; }
// PyTorch's graph transforms need these; outside of them they are what their names say.
inline Tensor lift(const Tensor& self) { return self; }
inline Tensor lift_fresh(const Tensor& self) { return self; }
inline Tensor lift_fresh_copy(const Tensor& self) { return self.clone(); }
inline std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                                 bool return_inverse = false,
                                                                 bool return_counts = false) {
  return ops::unique_dim_consecutive(self, dim, return_inverse, return_counts);
}
/// `size` rows of nonzero's result: its first ones, and after its last one rows of `fill_value`.
inline Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value = -1) {
  const Tensor found = self.nonzero();
  const int64_t kept = std::min(size, found.size(0));
  return cat({found.narrow(0, 0, kept), full({size - kept, self.dim()}, fill_value, found.options())});
}
inline Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<Tensor> flat;
  for (const Tensor& tensor : tensors) flat.push_back(tensor.contiguous().view({-1}));
  return cat(flat);
}
inline std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    parts.push_back(flat.narrow(0, start, tensor.numel()).view(tensor.sizes()));
    start += tensor.numel();
  }
  return parts;
}
/// Row-major in the order of dimensions that `physical_layout` gives, the outermost first.
inline Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, const TensorOptions& options = {}) {
  RUSH_CHECK_VALUE(size.size() == physical_layout.size(), "empty_permuted: got ", size.size(),
                   " sizes and a layout of ", physical_layout.size(),
                   " dimensions: give one of each for every dimension");
  std::vector<int64_t> strides(size.size(), 0);
  int64_t next = 1;
  for (size_t i = physical_layout.size(); i-- > 0;) {
    const int64_t dim = wrap_dim(physical_layout[i], static_cast<int64_t>(size.size()), "empty_permuted");
    RUSH_CHECK_VALUE(strides[dim] == 0, "empty_permuted: dimension ", dim, " appears twice in the layout");
    strides[dim] = next;
    next *= std::max<int64_t>(size[dim], 1);
  }
  return empty_strided(size, strides, options);
}
/// start, start + step, ... up to and including `end`, as floating point numbers unless the options say otherwise.
inline Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {}) {
  const bool whole = is_integral(options.dtype(), true);
  const auto number = [&](const Scalar& x) { return whole ? std::trunc(x.to<double>()) : x.to<double>(); };
  const double count = std::floor((number(end) - number(start)) / number(step)) + 1;
  RUSH_CHECK_VALUE(number(step) != 0 && count >= 1, "range: cannot go from ", start, " to ", end, " by steps of ",
                   step);
  const Tensor steps = arange(static_cast<int64_t>(count), options.dtype(options.dtype()));
  return steps.mul(number(step)).add(number(start)).to(steps.dtype());
}
inline Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options = {}) {
  return range(start, end, 1, options);
}

}  // namespace aten
}  // namespace rush
