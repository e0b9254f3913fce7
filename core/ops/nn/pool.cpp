#include "core/ops/nn/pool.h"

#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/reduce/extrema.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace {

// An input brought into one of the two layouts that kernels know, and what its output is to be.
struct Pooling {
  Tensor input;
  MemoryFormat format = MemoryFormat::Contiguous;
  DimVector output_sizes;
  PoolGeometry geometry;

  // Whether a window is a whole plane, which a reduction has more than one thread for.
  bool of_planes() const { return geometry.axis[2].adaptive && geometry.output_plane() == 1; }
  // Then a kernel has nothing to do; it would still visit windows, of which there may be any number.
  bool empty() const { return checked_numel(output_sizes) == 0; }
  Tensor empty_output(ScalarType dtype) const {
    return detail::empty_format(output_sizes, dtype, input.device(), format);
  }
  Tensor empty_input() const {
    return detail::empty_format(input.sizes(), input.scalar_type(), input.device(), format);
  }
  // A tensor of the output's shape, in the output's layout.
  Tensor as_output(const char* op, const char* argument, const Tensor& t) const {
    RUSH_CHECK_VALUE(t.sizes() == IntArrayRef(output_sizes), op, ": ", argument, " has shape ", t.sizes(),
                     ", expected ", output_sizes);
    return ops::contiguous(t, format);
  }
};

struct Window {
  IntArrayRef kernel, stride, padding, dilation;
  bool ceil_mode;
};

// Entry `d` of a list that has one for each of `dims` dimensions, or one for all.
int64_t entry(IntArrayRef list, int dims, int d, const char* op, const char* argument) {
  RUSH_CHECK_VALUE(list.size() == 1 || list.size() == static_cast<size_t>(dims), op, ": ", argument,
                   " must have one number", dims > 1 ? str(" or ", dims) : "", ", got ", list);
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)];
}

int64_t output_size(const char* op, const PoolAxis& a, bool ceil_mode) {
  const int64_t span = padded_size(op, a.input, a.padding) - window_reach(op, a.kernel, a.dilation) - 1;
  const int64_t rounded = add_sizes(op, span, ceil_mode ? a.stride - 1 : 0);
  int64_t size = (rounded >= 0 ? rounded / a.stride : -1) + 1;
  // The last window must start inside the input or the padding before it.
  if (ceil_mode && (size - 1) * a.stride >= a.input + a.padding) --size;
  RUSH_CHECK_VALUE(size >= 1, op, ": Output size is too small, since a window of ", a.kernel, " with dilation ",
                   a.dilation, " and padding ", a.padding, " does not fit an input of size ", a.input);
  return size;
}

// As in PyTorch, whose windows are ints: the product of two does not overflow.
constexpr int64_t kMostWindow = INT32_MAX;

PoolAxis window_axis(const char* op, int64_t input, const Window& w, int dims, int d) {
  PoolAxis a;
  a.input = input;
  a.kernel = entry(w.kernel, dims, d, op, "kernel_size");
  a.stride = w.stride.empty() ? a.kernel : entry(w.stride, dims, d, op, "stride");
  a.padding = entry(w.padding, dims, d, op, "padding");
  a.dilation = entry(w.dilation, dims, d, op, "dilation");
  RUSH_CHECK_VALUE(a.kernel > 0 && a.stride > 0 && a.dilation > 0, op,
                   ": kernel_size, stride and dilation must be positive, got ", a.kernel, ", ", a.stride, " and ",
                   a.dilation);
  RUSH_CHECK_VALUE(a.kernel <= kMostWindow && a.stride <= kMostWindow && a.dilation <= kMostWindow, op,
                   ": kernel_size, stride and dilation must be below 2^31, got ", a.kernel, ", ", a.stride, " and ",
                   a.dilation);
  RUSH_CHECK_VALUE(a.padding >= 0 && a.padding <= a.kernel / 2, op, ": padding must be between 0 and half of the ",
                   "kernel size ", a.kernel, ", got ", a.padding);
  a.output = output_size(op, a, w.ceil_mode);
  // Only the first windows start outside the input.
  const int64_t outside = std::min(a.output, (a.padding + a.stride - 1) / a.stride);
  for (int64_t o = 0; o < outside; ++o) {
    RUSH_CHECK_VALUE(a.begin(o) < a.end(o), op, ": window ", o, " of ", a.output, " has no element inside the input");
  }
  return a;
}

PoolAxis adaptive_axis(const char* op, int64_t input, int64_t output) {
  RUSH_CHECK_VALUE(output >= 0, op, ": output sizes must be non-negative, got ", output);
  PoolAxis a;
  a.input = input;
  a.output = output;
  a.adaptive = true;
  return a;
}

// Whether there may be no channels: PyTorch's adaptive averages allow it, its other poolings do not.
enum class EmptyChannels { Refused, Allowed };

// `axis(size, d)` gives the windows along the d-th of the last `dims` dimensions.
template <class Axis>
Pooling prepare(const char* op, const Tensor& self, int dims, EmptyChannels empty_channels, const Axis& axis) {
  const int64_t rank = self.dim();
  RUSH_CHECK_VALUE(rank == dims + 1 || rank == dims + 2, op, ": expected a tensor of ", dims + 1, " or ", dims + 2,
                   " dimensions, got shape ", self.sizes());
  const bool any = empty_channels == EmptyChannels::Allowed;
  for (int64_t d = any ? rank - dims : rank - dims - 1; d < rank; ++d) {
    RUSH_CHECK_VALUE(self.sizes()[d] > 0, op, ": only the batch", any ? " and the channels" : "",
                     " may have size 0, got shape ", self.sizes());
  }
  Pooling p;
  const auto wanted = dims == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  if (rank == dims + 2 && self.suggest_memory_format() == wanted) p.format = wanted;
  p.input = ops::contiguous(self, p.format);
  p.output_sizes = self.sizes();
  for (int64_t d = 0; d < rank - dims; ++d) {
    const bool channels_inside = p.format != MemoryFormat::Contiguous && d == 1;
    (channels_inside ? p.geometry.inner : p.geometry.outer) *= self.sizes()[d];
  }
  for (int d = 0; d < dims; ++d) {
    const int64_t at = rank - dims + d;
    const PoolAxis a = axis(self.sizes()[at], d);
    p.geometry.axis[3 - dims + d] = a;
    p.output_sizes[at] = a.output;
  }
  return p;
}

Pooling prepare_windows(const char* op, const Tensor& self, int dims, const Window& window) {
  return prepare(op, self, dims, EmptyChannels::Refused,
                 [&](int64_t size, int d) { return window_axis(op, size, window, dims, d); });
}

Pooling prepare_adaptive(const char* op, const Tensor& self, int dims, IntArrayRef sizes,
                         EmptyChannels empty_channels) {
  return prepare(op, self, dims, empty_channels, [&](int64_t size, int d) {
    return adaptive_axis(op, size, entry(sizes, dims, d, op, "output_size"));
  });
}

// Of an adaptive pooling whose gradient is `grad`.
Pooling prepare_adaptive_backward(const char* op, const Tensor& grad, const Tensor& self, int dims,
                                  EmptyChannels empty_channels) {
  RUSH_CHECK_VALUE(grad.dim() == self.dim() && grad.dim() > dims, op, ": grad_output has shape ", grad.sizes(),
                   ", the input ", self.sizes());
  return prepare_adaptive(op, self, dims, grad.sizes().slice(static_cast<size_t>(grad.dim() - dims)), empty_channels);
}

PoolResult run_max_pool(const Pooling& p) {
  PoolResult result(p.empty_output(p.input.scalar_type()), p.empty_output(kInt64));
  if (p.empty()) return result;
  const auto& [values, indices] = result;
  const PoolGeometry& g = p.geometry;
  if (p.of_planes()) {
    kernels::extreme(values.device().type, values, indices, p.input, {g.outer, g.input_plane(), g.inner}, true);
  } else {
    kernels::max_pool(values.device().type, values, indices, p.input, g);
  }
  return result;
}

Tensor run_max_pool_backward(const char* op, const Pooling& p, const Tensor& grad, const Tensor& indices) {
  RUSH_CHECK_TYPE(indices.scalar_type() == kInt64, op, ": indices must be int64, got ", indices.scalar_type());
  RUSH_CHECK_TYPE(grad.scalar_type() == p.input.scalar_type(), op, ": grad_output is ", grad.scalar_type(),
                  ", the input ", p.input.scalar_type());
  const Tensor grad_output = p.as_output(op, "grad_output", grad), places = p.as_output(op, "indices", indices);
  if (p.empty()) return zeros(p.input.sizes(), p.input.options());
  const Tensor result = p.empty_input();
  kernels::max_pool_backward(p.input.device().type, result, grad_output, places, p.geometry);
  return result;
}

Tensor run_avg_pool(const Pooling& p, const PoolDivisor& divisor) {
  const Tensor result = p.empty_output(p.input.scalar_type());
  if (p.empty()) return result;
  if (p.of_planes() && result.is_floating_point()) {
    const int64_t dims[] = {result.dim() - 3, result.dim() - 2, result.dim() - 1};
    const IntArrayRef reduced = IntArrayRef(dims).slice(p.geometry.axis[0].adaptive ? 0 : 1);
    kernels::mean(result.device().type, result, p.input, reduced);
  } else {
    kernels::avg_pool(result.device().type, result, p.input, p.geometry, divisor);
  }
  return result;
}

Tensor run_avg_pool_backward(const char* op, const Pooling& p, const Tensor& grad, const PoolDivisor& divisor) {
  RUSH_CHECK_TYPE(grad.scalar_type() == p.input.scalar_type(), op, ": grad_output is ", grad.scalar_type(),
                  ", the input ", p.input.scalar_type());
  const Tensor grad_output = p.as_output(op, "grad_output", grad);
  if (p.empty()) return zeros(p.input.sizes(), p.input.options());
  const Tensor result = p.empty_input();
  kernels::avg_pool_backward(p.input.device().type, result, grad_output, p.geometry, divisor);
  return result;
}

PoolDivisor checked_divisor(const char* op, bool count_include_pad, std::optional<int64_t> divisor_override) {
  RUSH_CHECK_VALUE(divisor_override.value_or(1) != 0, op, ": divisor_override must not be zero");
  return {count_include_pad, divisor_override.value_or(0)};
}

// By number of dimensions.
constexpr const char* kMaxPool[] = {"", "max_pool1d", "max_pool2d", "max_pool3d"};
constexpr const char* kAvgPool[] = {"", "avg_pool1d", "avg_pool2d", "avg_pool3d"};
constexpr const char* kAdaptiveMax[] = {"", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"};
constexpr const char* kAdaptiveAvg[] = {"", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};

}  // namespace

namespace native {

template <int dims>
static PoolResult max_pool_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                        IntArrayRef dilation, bool ceil_mode) {
  return run_max_pool(prepare_windows(kMaxPool[dims], self, dims, {kernel, stride, padding, dilation, ceil_mode}));
}

template <int dims>
static Tensor max_pool_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  const Pooling p = prepare_windows(kMaxPool[dims], self, dims, {kernel, stride, padding, dilation, ceil_mode});
  return run_max_pool_backward(kMaxPool[dims], p, grad, indices);
}

template <int dims>
static PoolResult adaptive_max_pool(const Tensor& self, IntArrayRef output_size) {
  const Pooling p = prepare_adaptive(kAdaptiveMax[dims], self, dims, output_size, EmptyChannels::Refused);
  return run_max_pool(p);
}

template <int dims>
static Tensor adaptive_max_pool_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  const Pooling p = prepare_adaptive_backward(kAdaptiveMax[dims], grad, self, dims, EmptyChannels::Refused);
  return run_max_pool_backward(kAdaptiveMax[dims], p, grad, indices);
}

template <int dims>
static Tensor avg_pool(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad, std::optional<int64_t> divisor_override) {
  const PoolDivisor divisor = checked_divisor(kAvgPool[dims], count_include_pad, divisor_override);
  return run_avg_pool(prepare_windows(kAvgPool[dims], self, dims, {kernel, stride, padding, 1, ceil_mode}), divisor);
}

template <int dims>
static Tensor avg_pool_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                                std::optional<int64_t> divisor_override) {
  const PoolDivisor divisor = checked_divisor(kAvgPool[dims], count_include_pad, divisor_override);
  const Pooling p = prepare_windows(kAvgPool[dims], self, dims, {kernel, stride, padding, 1, ceil_mode});
  return run_avg_pool_backward(kAvgPool[dims], p, grad, divisor);
}

template <int dims>
static Tensor adaptive_avg_pool(const Tensor& self, IntArrayRef output_size) {
  return run_avg_pool(prepare_adaptive(kAdaptiveAvg[dims], self, dims, output_size, EmptyChannels::Allowed), {});
}

template <int dims>
static Tensor adaptive_avg_pool_backward(const Tensor& grad, const Tensor& self) {
  const Pooling p = prepare_adaptive_backward(kAdaptiveAvg[dims], grad, self, dims, EmptyChannels::Allowed);
  return run_avg_pool_backward(kAdaptiveAvg[dims], p, grad, {});
}

// One-dimensional pooling is two-dimensional pooling of planes of height 1.
static Tensor add_height(const char* op, const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() == 2 || self.dim() == 3, op, ": expected a tensor of 2 or 3 dimensions, got shape ",
                   self.sizes());
  DimVector sizes(self.sizes());
  sizes.insert(sizes.end() - 1, 1);
  return ops::reshape(self, sizes);
}

static Tensor drop_height(const Tensor& result) { return ops::select(result, -2, 0); }

// Sizes for height and width from one for the width. An empty list stays one.
static DimVector with_height(IntArrayRef list, int64_t height, const char* op, const char* argument) {
  if (list.empty()) return {};
  return {height, entry(list, 1, 0, op, argument)};
}

static PoolResult max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                          IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const char* op = kMaxPool[1];
  const PoolResult result = ops::max_pool2d_with_indices(
      add_height(op, self), with_height(kernel, 1, op, "kernel_size"), with_height(stride, 1, op, "stride"),
      with_height(padding, 0, op, "padding"), with_height(dilation, 1, op, "dilation"), ceil_mode);
  return {drop_height(std::get<0>(result)), drop_height(std::get<1>(result))};
}

template <MaxPoolIndicesOp& with_indices>
static Tensor max_pool(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool ceil_mode) {
  return std::get<0>(with_indices(self, kernel, stride, padding, dilation, ceil_mode));
}

static Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                         bool ceil_mode, bool count_include_pad) {
  const char* op = kAvgPool[1];
  return drop_height(ops::avg_pool2d(add_height(op, self), with_height(kernel, 1, op, "kernel_size"),
                                     with_height(stride, 1, op, "stride"), with_height(padding, 0, op, "padding"),
                                     ceil_mode, count_include_pad, std::nullopt));
}

static Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size) {
  const char* op = kAdaptiveAvg[1];
  return drop_height(ops::_adaptive_avg_pool2d(add_height(op, self), with_height(output_size, 1, op, "output_size")));
}

static PoolResult adaptive_max_pool1d(const Tensor& self, IntArrayRef output_size) {
  const char* op = kAdaptiveMax[1];
  const PoolResult result =
      ops::adaptive_max_pool2d(add_height(op, self), with_height(output_size, 1, op, "output_size"));
  return {drop_height(std::get<0>(result)), drop_height(std::get<1>(result))};
}

static Tensor unpool(const char* op, const Tensor& self, const Tensor& indices, int dims, IntArrayRef output_size) {
  RUSH_CHECK_VALUE(self.dim() == dims + 1 || self.dim() == dims + 2, op, ": expected a tensor of ", dims + 1, " or ",
                   dims + 2, " dimensions, got shape ", self.sizes());
  RUSH_CHECK_VALUE(indices.sizes() == self.sizes(), op, ": indices have shape ", indices.sizes(), ", the values ",
                   self.sizes());
  RUSH_CHECK_VALUE(output_size.size() == static_cast<size_t>(dims), op, ": output_size needs ", dims, " numbers, got ",
                   output_size);
  const IntArrayRef leading = self.sizes().slice(0, static_cast<size_t>(self.dim() - dims));
  DimVector in(leading), out(leading), sizes(leading);
  for (int64_t size : output_size) sizes.push_back(size);
  in.push_back(checked_numel(self.sizes().slice(leading.size())));
  out.push_back(checked_numel(output_size));
  const Tensor flat = zeros(out, self.options()).scatter(-1, indices.reshape(in), self.reshape(in));
  return flat.view(sizes);
}

static Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return unpool("max_unpool2d", self, indices, 2, output_size).contiguous(self.suggest_memory_format());
}

static Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef stride,
                           IntArrayRef padding) {
  const char* op = "max_unpool3d";
  RUSH_CHECK_VALUE(stride.size() == 3 && padding.size() == 3, op, ": stride and padding need 3 numbers, got ", stride,
                   " and ", padding);
  for (int64_t s : stride) RUSH_CHECK_VALUE(s > 0, op, ": stride must be positive, got ", stride);
  return unpool(op, self, indices, 3, output_size);
}

}  // namespace native

void register_pool_ops(Registry& r) {
  r.composite(ops::max_pool1d, native::max_pool<ops::max_pool1d_with_indices>);
  r.composite(ops::max_pool2d, native::max_pool<ops::max_pool2d_with_indices>);
  r.composite(ops::max_pool3d, native::max_pool<ops::max_pool3d_with_indices>);
  r.composite(ops::max_pool1d_with_indices, native::max_pool1d_with_indices);
  r.native(ops::max_pool2d_with_indices, native::max_pool_with_indices<2>);
  r.native(ops::max_pool3d_with_indices, native::max_pool_with_indices<3>);
  r.native(ops::max_pool2d_with_indices_backward, native::max_pool_backward<2>);
  r.native(ops::max_pool3d_with_indices_backward, native::max_pool_backward<3>);
  r.composite(ops::avg_pool1d, native::avg_pool1d);
  r.native(ops::avg_pool2d, native::avg_pool<2>);
  r.native(ops::avg_pool3d, native::avg_pool<3>);
  r.native(ops::avg_pool2d_backward, native::avg_pool_backward<2>);
  r.native(ops::avg_pool3d_backward, native::avg_pool_backward<3>);
  r.composite(ops::adaptive_avg_pool1d, native::adaptive_avg_pool1d);
  r.composite(ops::adaptive_avg_pool2d, native::same_as<ops::_adaptive_avg_pool2d>);
  r.composite(ops::adaptive_avg_pool3d, native::same_as<ops::_adaptive_avg_pool3d>);
  r.native(ops::_adaptive_avg_pool2d, native::adaptive_avg_pool<2>);
  r.native(ops::_adaptive_avg_pool3d, native::adaptive_avg_pool<3>);
  r.native(ops::_adaptive_avg_pool2d_backward, native::adaptive_avg_pool_backward<2>);
  r.native(ops::_adaptive_avg_pool3d_backward, native::adaptive_avg_pool_backward<3>);
  r.composite(ops::adaptive_max_pool1d, native::adaptive_max_pool1d);
  r.native(ops::adaptive_max_pool2d, native::adaptive_max_pool<2>);
  r.native(ops::adaptive_max_pool3d, native::adaptive_max_pool<3>);
  r.native(ops::adaptive_max_pool2d_backward, native::adaptive_max_pool_backward<2>);
  r.native(ops::adaptive_max_pool3d_backward, native::adaptive_max_pool_backward<3>);
  r.composite(ops::max_unpool2d, native::max_unpool2d);
  r.composite(ops::max_unpool3d, native::max_unpool3d);
}

}  // namespace rush
