#include "ATen/operators/operator_names.h"

#include <cmath>

namespace rush {
inline namespace aten {

Tensor ldexp(const Tensor& self, const Tensor& other) {
  const ScalarType common = result_type(self, other);
  const Tensor out = self.mul(rush::pow(2.0, other));
  return is_integral(common, true) ? out : out.to(common);
}

namespace {
// Of a float32 or float64 tensor: where its bits have the exponent, and what the exponent of 1 is there.
struct FloatFormat {
  ScalarType bits;
  int64_t fraction, bias;
};
FloatFormat format_of(ScalarType dtype) {
  return dtype == kFloat64 ? FloatFormat{kInt64, 52, 1023} : FloatFormat{kInt32, 23, 127};
}
// 2^exponent, exactly, for an integer tensor of exponents of normal numbers.
Tensor power_of_two(const Tensor& exponent, ScalarType dtype) {
  const FloatFormat format = format_of(dtype);
  return exponent.to(format.bits).add(format.bias).bitwise_left_shift(format.fraction).view(dtype);
}
}  // namespace

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  RUSH_CHECK_TYPE(self.is_floating_point(), "frexp: needs floating point, got ", self.scalar_type());
  const ScalarType dtype = self.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
  const FloatFormat format = format_of(dtype);
  const Tensor x = self.to(dtype), value = x.detach().contiguous();
  const Tensor special = value.eq(0).logical_or(value.isfinite().logical_not());
  // Numbers below the normal ones are first multiplied by 2^64.
  const Tensor small = value.abs().lt(std::exp2(2.0 - static_cast<double>(format.bias)));
  const Tensor shift = small.to(kInt64).mul(64);
  const Tensor bits = value.mul(power_of_two(shift, dtype)).view(format.bits);
  const Tensor field = bits.bitwise_right_shift(format.fraction).bitwise_and(2 * format.bias + 1).to(kInt64);
  const Tensor exponent = field.sub(format.bias - 1).sub(shift).masked_fill(special, 0);
  const Tensor half = exponent.div(2, "trunc");  // 2^-exponent alone may overflow
  const Tensor mantissa = x.mul(power_of_two(half.neg(), dtype)).mul(power_of_two(half.sub(exponent), dtype));
  return {mantissa.to(self.scalar_type()), exponent.to(kInt32)};
}
Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim) { return fft::fftshift(self, dim); }
Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim) { return fft::ifftshift(self, dim); }
Tensor fft_fftfreq(int64_t n, double d, const TensorOptions& options) { return fft::fftfreq(n, d, options); }
Tensor fft_rfftfreq(int64_t n, double d, const TensorOptions& options) { return fft::rfftfreq(n, d, options); }
Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  return nn::utils::rnn::pad_sequence(sequences, batch_first, padding_value, padding_side);
}
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}
Tensor thnn_conv2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                   const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding) {
  return conv2d(self, weight, bias, stride, padding);
}
Tensor slow_conv3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                   const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding) {
  return conv3d(self, weight, bias, stride, padding);
}
Tensor slow_conv3d_forward(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                           const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding) {
  return slow_conv3d(self, weight, kernel_size, bias, stride, padding);
}
Tensor slow_conv_dilated2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                           const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                           IntArrayRef dilation) {
  return conv2d(self, weight, bias, stride, padding, dilation);
}
Tensor slow_conv_dilated3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                           const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                           IntArrayRef dilation) {
  return conv3d(self, weight, bias, stride, padding, dilation);
}
Tensor conv_depthwise3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation) {
  return conv3d(self, weight, bias, stride, padding, dilation, self.size(1));
}
Tensor slow_conv_transpose2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                             const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                             IntArrayRef output_padding, IntArrayRef dilation) {
  return conv_transpose2d(self, weight, bias, stride, padding, output_padding, 1, dilation);
}
Tensor slow_conv_transpose3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                             const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                             IntArrayRef output_padding, IntArrayRef dilation) {
  return conv_transpose3d(self, weight, bias, stride, padding, output_padding, 1, dilation);
}
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  return conv1d(self.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, 1, pad).permute({2, 0, 1});
}
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const std::optional<Tensor>& weight, int64_t reduction,
                                            int64_t ignore_index) {
  return ops::nll_loss_forward(self, target, weight, reduction, ignore_index);
}
std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target,
                                              const std::optional<Tensor>& weight, int64_t reduction,
                                              int64_t ignore_index) {
  return ops::nll_loss2d_forward(self, target, weight, reduction, ignore_index);
}
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (self.dim() == 0) {  // one class
    const auto [loss, marked] = multilabel_margin_loss_forward(self.unsqueeze(0), target.reshape({1}), reduction);
    return {loss, marked.squeeze(0)};
  }
  const Tensor unused = target.lt(0).cumsum(-1).gt(0);
  const Tensor index = target.masked_fill(unused, self.size(-1));  // a column that is cut off
  std::vector<int64_t> sizes = self.sizes().vec();
  ++sizes.back();
  const Tensor marked = zeros(sizes, self.options()).scatter_(-1, index, 1);
  return {multilabel_margin_loss(self, target, reduction), marked.narrow(-1, 0, self.size(-1))};
}
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const std::vector<Tensor> direction = dx.chunk(2, dim);
  const Tensor gate = x.chunk(2, dim)[1].sigmoid();
  return direction[0].mul(gate).add(glu.mul(direction[1]).mul(gate.neg().add(1)));
}
Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  const Tensor rows = std::get<0>(_unique2(indices.flatten()));
  const Tensor selected = self.index_select(0, rows);
  const Tensor norms = selected.norm(norm_type, 1, true);
  const Tensor scales = where(norms.gt(max_norm), norms.add(1e-7).reciprocal().mul(max_norm), ones_like(norms));
  return self.index_copy_(0, rows, selected.mul(scales));
}
Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  Tensor out = self.clone();
  return embedding_renorm_(out, indices, max_norm, norm_type);
}
Tensor random(const Tensor& self, const OptionalGenerator& generator) { return empty_like(self).random_(generator); }
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) { return self.clone().copy_(src, non_blocking); }
const Tensor& resize_as_(const Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  return self.resize_as_(the_template, memory_format);
}
Tensor resize(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  return self.detach().clone().resize_(size, memory_format);
}
Tensor resize_as(const Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  return resize(self, the_template.sizes(), memory_format);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse,
                                                          bool return_counts) {
  return ops::unique_dim_consecutive(self, dim, return_inverse, return_counts);
}
Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  const Tensor found = self.nonzero();
  const int64_t kept = std::min(size, found.size(0));
  return cat({found.narrow(0, 0, kept), full({size - kept, self.dim()}, fill_value, found.options())});
}
Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<Tensor> flat;
  for (const Tensor& tensor : tensors) flat.push_back(tensor.contiguous().view({-1}));
  return cat(flat);
}
std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    parts.push_back(flat.narrow(0, start, tensor.numel()).view(tensor.sizes()));
    start += tensor.numel();
  }
  return parts;
}
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, const TensorOptions& options) {
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
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  const bool whole = is_integral(options.dtype(), true);
  const auto number = [&](const Scalar& x) { return whole ? std::trunc(x.to<double>()) : x.to<double>(); };
  const double count = std::floor((number(end) - number(start)) / number(step)) + 1;
  RUSH_CHECK_VALUE(number(step) != 0 && count >= 1, "range: cannot go from ", start, " to ", end, " by steps of ",
                   step);
  const Tensor steps = arange(static_cast<int64_t>(count), options.dtype(options.dtype()));
  return steps.mul(number(step)).add(number(start)).to(steps.dtype());
}
Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return range(start, end, 1, options);
}
}  // namespace aten
}  // namespace rush
