#include "backends/cuda/dnn/conv.h"

#include "backends/cuda/dnn/conv_plan.h"
#include "backends/cuda/dnn/handle.h"
#include "backends/cuda/memory/mark_written.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

DimVector strides_in(const Tensor& t, bool channels_last) {
  return strides_for(t.sizes(), channels_last ? MemoryFormat::ChannelsLast3d : MemoryFormat::Contiguous);
}

// Whether t is dense in that format; dimensions of size one may have any stride.
bool lies_in(const Tensor& t, bool channels_last) {
  const DimVector dense = strides_in(t, channels_last);
  for (size_t d = 0; d < dense.size(); ++d) {
    if (t.sizes()[d] != 1 && t.strides()[d] != dense[d]) return false;
  }
  return true;
}

bool only_channels_last(const Tensor& t) { return lies_in(t, true) && !lies_in(t, false); }

bool is_aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data_ptr()) % kConvAlignment == 0; }

// Memory for t as cuDNN is to see it: its own where that fits.
Tensor in_format(const Tensor& t, bool channels_last) {
  if (lies_in(t, channels_last) && is_aligned(t)) return t;
  return detail::empty_strided(t.sizes(), strides_in(t, channels_last), t.scalar_type(), t.device());
}

void copy_unless_same(const Tensor& to, const Tensor& from) {
  if (to.is_same(from)) return;
  Tensor target = to;
  native::copy_(target, from, false);
}

// `t` in row-major, aligned memory: its own where that is so.
Tensor aligned_copy(const Tensor& t) { return t.is_contiguous() && is_aligned(t) ? t : native::clone_contiguous(t); }

std::array<int64_t, 5> five_sizes(const Tensor& t) {
  std::array<int64_t, 5> sizes;
  std::copy(t.sizes().begin(), t.sizes().end(), sizes.begin());
  return sizes;
}

}  // namespace

bool dnn_convolution(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                     const Tensor& bias, const ConvGeometry& geometry) {
  const Tensor* tensors[] = {&output, &input, &weight};  // in the order of ConvDirection
  const auto written = static_cast<size_t>(direction);
  const ScalarType dtype = tensors[(written + 1) % 3]->scalar_type();
  if (!dnn_enabled_for(dtype)) return false;
  // Channels-last where a tensor is: cuDNN wants all of them in one format.
  const bool channels_last = only_channels_last(input) || only_channels_last(weight) || only_channels_last(output);
  Tensor prepared[3];
  for (size_t i = 0; i < 3; ++i) {
    prepared[i] = in_format(*tensors[i], channels_last);
    if (i != written) copy_unless_same(prepared[i], *tensors[i]);
  }
  const Tensor numbers = bias.defined() ? aligned_copy(bias) : bias;
  const ConvProblem problem{direction,
                            dtype,
                            tensors[written]->scalar_type(),
                            channels_last,
                            bias.defined(),
                            five_sizes(input),
                            five_sizes(weight),
                            five_sizes(output),
                            geometry.stride,
                            geometry.padding,
                            geometry.dilation};
  if (output.device().is_meta()) return estimate_conv_plan(problem);
  const ConvPointers data{prepared[1].data_ptr(), prepared[2].data_ptr(), prepared[0].data_ptr(),
                          bias.defined() ? numbers.data_ptr() : nullptr};
  if (!run_conv_plan(problem, data)) return false;
  mark_written(prepared[written]);
  copy_unless_same(*tensors[written], prepared[written]);
  return true;
}

}  // namespace rush::cuda
