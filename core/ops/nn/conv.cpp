#include "core/ops/nn/conv.h"

#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/ops/view/pad.h"
#include "core/print/bracketed.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

// One number per spatial dimension, from that many or one for all.
DimVector per_dimension(const char* op, const char* argument, IntArrayRef values, int64_t spatial, int64_t least) {
  RUSH_CHECK_VALUE(values.size() == 1 || static_cast<int64_t>(values.size()) == spatial, op, ": ", argument, " needs ",
                   spatial, " numbers or one, got ", values);
  DimVector all(static_cast<size_t>(spatial), 0);
  for (int64_t d = 0; d < spatial; ++d) {
    all[d] = values.size() == 1 ? values[0] : values[d];
    RUSH_CHECK_VALUE(all[d] >= least, op, ": ", argument, " must be at least ", least, ", got ", values);
  }
  return all;
}

struct ConvArguments {
  DimVector stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;

  int64_t spatial() const { return static_cast<int64_t>(stride.size()); }

  ConvGeometry geometry() const {
    ConvGeometry g{{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, groups};
    const size_t lead = 3 - stride.size();
    std::copy(stride.begin(), stride.end(), g.stride.begin() + lead);
    std::copy(padding.begin(), padding.end(), g.padding.begin() + lead);
    std::copy(dilation.begin(), dilation.end(), g.dilation.begin() + lead);
    return g;
  }
};

void check_tensors(const char* op, const Tensor& input, const Tensor& weight, const ConvArguments& args) {
  RUSH_CHECK_VALUE(input.dim() == weight.dim(), op, ": an input of shape ", input.sizes(),
                   " does not fit a weight of shape ", weight.sizes());
  RUSH_CHECK_TYPE(input.scalar_type() == weight.scalar_type(), op, ": Input type (", input.scalar_type(),
                  ") and weight type (", weight.scalar_type(), ") should be the same");
  RUSH_CHECK_VALUE(input.device() == weight.device(), op, ": devices differ: input is on ", input.device(),
                   ", weight is on ", weight.device());
  for (int64_t size : weight.sizes()) {
    RUSH_CHECK_VALUE(size > 0, op, ": a weight of shape ", weight.sizes(), " has no elements");
  }
  RUSH_CHECK_VALUE(args.groups > 0 && weight.size(0) % args.groups == 0, op, ": ", weight.size(0),
                   " output channels of weight ", weight.sizes(), " do not divide into ", args.groups, " groups");
  const int64_t channels = args.transposed ? weight.size(0) : weight.size(1) * args.groups;
  RUSH_CHECK_VALUE(input.size(1) == channels, op, args.transposed ? ": Given transposed=1" : ": Given groups=",
                   args.transposed ? "" : str(args.groups), ", weight of size ", bracketed(weight.sizes()),
                   ", expected input", bracketed(input.sizes()), " to have ", channels, " channels, but got ",
                   input.size(1), " channels instead");
}

ConvArguments check_arguments(const char* op, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                              int64_t groups) {
  const int64_t spatial = weight.dim() - 2;
  RUSH_CHECK_VALUE(spatial >= 1 && spatial <= 3, op, ": expected a weight of 3 to 5 dimensions, got shape ",
                   weight.sizes());
  ConvArguments args{per_dimension(op, "stride", stride, spatial, 1),
                     per_dimension(op, "padding", padding, spatial, 0),
                     per_dimension(op, "dilation", dilation, spatial, 1),
                     per_dimension(op, "output_padding", output_padding, spatial, 0),
                     transposed,
                     groups};
  for (int64_t d = 0; d < spatial && transposed; ++d) {
    RUSH_CHECK_VALUE(args.output_padding[d] < std::max(args.stride[d], args.dilation[d]), op,
                     ": output_padding must be less than stride or dilation, got ", output_padding);
  }
  check_tensors(op, input, weight, args);
  return args;
}

// The output's sizes. A stride or dilation that leads beyond the padded image is taken by no window: in `args` it
// becomes as large as the image, of which all elements can be counted, so that kernels may multiply with it.
DimVector output_sizes(const char* op, const Tensor& input, const Tensor& weight, ConvArguments& args) {
  DimVector sizes = {input.size(0), args.transposed ? weight.size(1) * args.groups : weight.size(0)};
  DimVector image = {sizes[0], args.transposed ? sizes[1] : input.size(1)};  // the larger side, padded
  for (int64_t d = 0; d < args.spatial(); ++d) {
    const int64_t in = input.size(d + 2);
    const int64_t reach = add_sizes(op, window_reach(op, weight.size(d + 2), args.dilation[d]), 1);
    if (args.transposed) {
      const int64_t windows = add_sizes(op, multiply_sizes(op, in - 1, args.stride[d]), reach);
      image.push_back(add_sizes(op, windows, args.output_padding[d]));
      sizes.push_back(subtract_sizes(op, image.back(), multiply_sizes(op, args.padding[d], 2)));
    } else {
      image.push_back(padded_size(op, in, args.padding[d]));
      RUSH_CHECK_VALUE(image.back() >= reach, op, ": Kernel size can't be greater than actual input size: it is ",
                       reach, " with its dilation against ", image.back(), " with padding, in dimension ", d + 2,
                       " of an input ", input.sizes());
      sizes.push_back((image.back() - reach) / args.stride[d] + 1);
    }
    RUSH_CHECK_VALUE(sizes.back() >= 0, op, ": Output size is too small, ", sizes.back(), " in dimension ", d + 2);
    const int64_t most = std::max<int64_t>(image.back(), 1);
    args.stride[d] = std::min(args.stride[d], most);
    args.dilation[d] = std::min(args.dilation[d], most);
  }
  checked_numel(image);
  return sizes;
}

// Five dimensions: those missing are of size one, before the spatial ones.
Tensor as_volume(const Tensor& t) {
  if (!t.defined() || t.dim() == 5) return t;
  DimVector sizes(t.sizes()), strides(t.strides());
  while (sizes.size() < 5) {
    sizes.insert(sizes.begin() + 2, 1);
    strides.insert(strides.begin() + 2, 1);
  }
  return detail::make_view(t, sizes, strides, t.storage_offset());
}

// Channels-last goes in, channels-last comes out.
MemoryFormat format_of(const Tensor& input, const Tensor& weight) {
  const MemoryFormat format = input.suggest_memory_format();
  return format != MemoryFormat::Contiguous ? format : weight.suggest_memory_format();
}

// (C) as (C, 1, ...), which broadcasts over what a convolution returns.
Tensor per_channel(const Tensor& bias, int64_t spatial) {
  DimVector sizes(static_cast<size_t>(spatial) + 1, 1);
  sizes[0] = bias.size(0);
  return bias.view(sizes);
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  const char* op = transposed ? "conv_transpose" : "convolution";
  ConvArguments args =
      check_arguments(op, input, weight, stride, padding, dilation, transposed, output_padding, groups);
  const DimVector sizes = output_sizes(op, input, weight, args);
  if (bias) {
    RUSH_CHECK_VALUE(bias->dim() == 1 && bias->size(0) == sizes[1], op, ": Given weight of size ",
                     bracketed(weight.sizes()), ", expected bias to be 1-dimensional with ", sizes[1],
                     " elements, but got bias of size ", bracketed(bias->sizes()), " instead");
    RUSH_CHECK_TYPE(bias->scalar_type() == input.scalar_type(), op, ": Input type (", input.scalar_type(),
                    ") and bias type (", bias->scalar_type(), ") should be the same");
    RUSH_CHECK_VALUE(bias->device() == input.device(), op, ": devices differ: input is on ", input.device(),
                     ", bias is on ", bias->device());
  }
  const Tensor out = detail::empty_format(sizes, input.scalar_type(), input.device(), format_of(input, weight));
  if (out.numel() == 0) return out;
  if (input.numel() == 0) {  // nothing but padding is seen
    out.zero_();
    return bias ? out.add_(per_channel(*bias, args.spatial())) : out;
  }
  const auto& kernel = transposed ? kernels::convolution_transpose : kernels::convolution;
  kernel(input.device().type, as_volume(out), as_volume(input), as_volume(weight), bias.value_or(Tensor()),
         args.geometry());
  return out;
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input,
                                                        const Tensor& weight, OptionalIntArrayRef /*bias_sizes*/,
                                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> output_mask) {
  const char* op = "convolution_backward";
  ConvArguments args =
      check_arguments(op, input, weight, stride, padding, dilation, transposed, output_padding, groups);
  const DimVector sizes = output_sizes(op, input, weight, args);
  RUSH_CHECK_VALUE(grad_output.sizes() == IntArrayRef(sizes), op, ": the convolution's output has shape ", sizes,
                   ", its gradient ", grad_output.sizes());
  RUSH_CHECK_TYPE(grad_output.scalar_type() == input.scalar_type(), op, ": dtypes differ: grad_output is ",
                  grad_output.scalar_type(), ", input is ", input.scalar_type());
  const DeviceType device = input.device().type;
  const bool empty = grad_output.numel() == 0 || input.numel() == 0;
  const Tensor grad = as_volume(grad_output), no_bias;
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = detail::empty_format(input.sizes(), input.scalar_type(), input.device(), format_of(input, weight));
    const auto& kernel = transposed ? kernels::convolution : kernels::convolution_transpose;
    if (empty) {
      grad_input.zero_();
    } else {
      kernel(device, as_volume(grad_input), grad, as_volume(weight), no_bias, args.geometry());
    }
  }
  if (output_mask[1]) {
    grad_weight =
        detail::empty_format(weight.sizes(), weight.scalar_type(), weight.device(), weight.suggest_memory_format());
    // In a transposed convolution the input is the smaller side, as the output is in an ordinary one.
    if (empty) {
      grad_weight.zero_();
    } else {
      kernels::convolution_weight(device, as_volume(grad_weight), transposed ? as_volume(input) : grad,
                                  transposed ? grad : as_volume(input), args.geometry());
    }
  }
  if (output_mask[2]) grad_bias = grad_output.sum(IntArrayRef(other_dims(grad_output, 1)));
  return {grad_input, grad_weight, grad_bias};
}

// The input with a batch of one where it has none.
Tensor batched(const char* op, const Tensor& input, int64_t spatial) {
  RUSH_CHECK_VALUE(input.dim() == spatial + 1 || input.dim() == spatial + 2, op, ": Expected ", spatial + 1,
                   "D (unbatched) or ", spatial + 2, "D (batched) input to ", op,
                   ", but got input of size: ", bracketed(input.sizes()));
  return input.dim() == spatial + 1 ? input.unsqueeze(0) : input;
}

void check_weight(const char* op, const Tensor& weight, int64_t spatial) {
  RUSH_CHECK_VALUE(weight.dim() == spatial + 2, op, ": expected a weight of ", spatial + 2, " dimensions, got shape ",
                   weight.sizes());
}

constexpr const char* kConvNames[] = {"conv1d", "conv2d", "conv3d"};
constexpr const char* kConvTransposeNames[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};

template <int spatial>
Tensor conv(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
            IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  const char* op = kConvNames[spatial - 1];
  check_weight(op, weight, spatial);
  const Tensor in = batched(op, input, spatial);
  const Tensor out = ops::convolution(in, weight, bias, stride, padding, dilation, false, 0, groups);
  return in.dim() == input.dim() ? out : out.squeeze(0);
}

// "same" padding needs dilation * (kernel - 1) zeros in all, the odd one at the end, where a convolution pads both
// sides alike.
template <int spatial>
Tensor conv_same(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                 IntArrayRef dilation, int64_t groups) {
  const char* op = kConvNames[spatial - 1];
  check_weight(op, weight, spatial);
  const Tensor in = batched(op, input, spatial);
  for (int64_t s : stride) {
    RUSH_CHECK_VALUE(s == 1, op, ": padding 'same' needs stride 1, got ", stride);
  }
  const DimVector apart = per_dimension(op, "dilation", dilation, spatial, 1);
  DimVector padding(spatial, 0), odd(2 * spatial, 0);  // `odd` begins with the last dimension, as constant_pad_nd wants
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t reach = window_reach(op, weight.size(d + 2), apart[d]);
    padding[d] = reach / 2;
    odd[2 * (spatial - 1 - d) + 1] = reach % 2;
  }
  const bool any_odd = std::find(odd.begin(), odd.end(), 1) != odd.end();
  const Tensor padded = any_odd ? constant_pad_nd(in, odd) : in;
  const Tensor out = conv<spatial>(padded, weight, bias, stride, padding, dilation, groups);
  return in.dim() == input.dim() ? out : out.squeeze(0);
}

template <int spatial>
Tensor conv_by_name(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                    std::string_view padding, IntArrayRef dilation, int64_t groups) {
  if (padding == "same") return conv_same<spatial>(input, weight, bias, stride, dilation, groups);
  RUSH_CHECK_VALUE(padding == "valid", kConvNames[spatial - 1], ": padding must be 'same' or 'valid', got '", padding,
                   "'");
  return conv<spatial>(input, weight, bias, stride, 0, dilation, groups);
}

template <int spatial>
Tensor conv_transpose(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                      IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  const char* op = kConvTransposeNames[spatial - 1];
  check_weight(op, weight, spatial);
  const Tensor in = batched(op, input, spatial);
  const Tensor out = ops::convolution(in, weight, bias, stride, padding, dilation, true, output_padding, groups);
  return in.dim() == input.dim() ? out : out.squeeze(0);
}

}  // namespace
}  // namespace native

void register_conv_ops(Registry& r) {
  r.native(ops::convolution, native::convolution);
  r.native(ops::convolution_backward, native::convolution_backward);
  r.composite(ops::conv1d, native::conv<1>);
  r.composite(ops::conv2d, native::conv<2>);
  r.composite(ops::conv3d, native::conv<3>);
  r.composite(ops::conv1d_padding, native::conv_by_name<1>);
  r.composite(ops::conv2d_padding, native::conv_by_name<2>);
  r.composite(ops::conv3d_padding, native::conv_by_name<3>);
  r.composite(ops::conv_transpose1d, native::conv_transpose<1>);
  r.composite(ops::conv_transpose2d, native::conv_transpose<2>);
  r.composite(ops::conv_transpose3d, native::conv_transpose<3>);
}

}  // namespace rush
