// Depthwise convolutions of volumes, for which cuDNN has only kernels that multiply matrices of one column. A thread
// computes an element of the output or of the input's gradient from all taps, a row of threads computes an element of
// the weight's gradient. There are no atomics, so results repeat.
#include "backends/cuda/kernels/nn/conv_depthwise.h"

#include "backends/cuda/kernels/places.h"
#include "backends/cuda/kernels/rows.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// A tensor of five dimensions (N, C, D, H, W) and any strides.
template <class T, class Index>
struct Volumes {
  T* data;
  Index stride[5];

  explicit Volumes(const Tensor& t) : data(t.data_ptr<std::remove_const_t<T>>()) {
    for (int d = 0; d < 5; ++d) stride[d] = static_cast<Index>(t.stride(d));
  }
  __device__ T* plane(Index n, Index c) const { return data + n * stride[0] + c * stride[1]; }
  __device__ Index offset(Index d, Index h, Index w) const { return d * stride[2] + h * stride[3] + w * stride[4]; }
};

// Where the taps of one dimension fall.
template <class Index>
struct TapAxis {
  Index input, output, kernel, padding, dilation;
  IndexDivider<Index> stride;

  // The input position that tap k of an output position reads. False where it is in the padding.
  __device__ bool input_at(Index position, Index k, Index& at) const {
    at = position * static_cast<Index>(stride.divisor) - padding + k * dilation;
    return at >= 0 && at < input;
  }
  // The output position whose tap k reads an input position. False where there is none.
  __device__ bool output_at(Index position, Index k, Index& at) const {
    const Index reached = position + padding - k * dilation;
    if (reached < 0) return false;
    at = stride.quotient(reached);
    return at < output && at * static_cast<Index>(stride.divisor) == reached;
  }
};

template <class Index>
struct DepthwiseGeometry {
  TapAxis<Index> axis[3];
  IndexDivider<Index> channels, multiplier;  // of the input; output channels for each of them

  DepthwiseGeometry(const Tensor& input, const Tensor& weight, const Tensor& output, const ConvGeometry& g)
      : channels(static_cast<Index>(input.size(1))), multiplier(static_cast<Index>(output.size(1) / input.size(1))) {
    const auto to = [](int64_t n) { return static_cast<Index>(n); };
    for (size_t a = 0; a < 3; ++a) {
      const auto d = static_cast<int64_t>(a) + 2;
      axis[a] = {to(input.size(d)), to(output.size(d)), to(weight.size(d)),
                 to(g.padding[a]),  to(g.dilation[a]),  IndexDivider<Index>(to(g.stride[a]))};
    }
  }
};

// result = the sum over the taps of `filter` times what they read of `source`. The result is the output, or with
// kTransposed the input or its gradient.
template <class T, class Index, bool kTransposed>
struct DepthwiseSum {
  using Math = opmath_t<T>;
  DepthwiseGeometry<Index> g;
  Volumes<T, Index> result;
  Volumes<const T, Index> source, filter;
  const T* bias;  // may be null
  Index bias_stride;
  Places<Index> places;
  IndexDivider<Index> channels;  // of the result, in the outer dimension of a place, or else in the inner one
  bool channels_last;

  __device__ void operator()(int64_t i) const {
    const Place<Index> to = places(i);
    Index n = to.outer;
    const Index c = channels_last ? to.inner : Places<Index>::split(n, channels);
    Math sum(0);
    if constexpr (kTransposed) {
      const auto each = static_cast<Index>(g.multiplier.divisor);
      for (Index o = c * each; o < (c + 1) * each; ++o) sum += taps(source.plane(n, o), filter.plane(o, 0), to);
    } else {
      sum = taps(source.plane(n, g.multiplier.quotient(c)), filter.plane(c, 0), to);
    }
    if (bias) sum += static_cast<Math>(bias[c * bias_stride]);
    result.plane(n, c)[result.offset(to.d, to.h, to.w)] = static_cast<T>(sum);
  }

 private:
  __device__ bool source_at(int axis, Index position, Index k, Index& at) const {
    return kTransposed ? g.axis[axis].output_at(position, k, at) : g.axis[axis].input_at(position, k, at);
  }
  __device__ Math taps(const T* volume, const T* weights, const Place<Index>& to) const {
    Math sum(0);
    Index d, h, w;
    for (Index kd = 0; kd < g.axis[0].kernel; ++kd) {
      if (!source_at(0, to.d, kd, d)) continue;
      for (Index kh = 0; kh < g.axis[1].kernel; ++kh) {
        if (!source_at(1, to.h, kh, h)) continue;
        for (Index kw = 0; kw < g.axis[2].kernel; ++kw) {
          if (!source_at(2, to.w, kw, w)) continue;
          sum +=
              static_cast<Math>(weights[filter.offset(kd, kh, kw)]) * static_cast<Math>(volume[source.offset(d, h, w)]);
        }
      }
    }
    return sum;
  }
};

// weight[o, 0, k] = the sum over the output's gradient of channel o, times what tap k of its window reads.
template <class T, class Index>
struct DepthwiseWeight {
  using Math = opmath_t<T>;
  DepthwiseGeometry<Index> g;
  Volumes<T, Index> weight;
  Volumes<const T, Index> output, input;
  Places<Index> taps, positions;  // of `weight`, and of one channel of `output`
  int64_t taps_count, positions_count;

  __device__ Math sum_of_thread(const Place<Index>& tap) const {
    const Index channel = g.multiplier.quotient(tap.outer);
    Math sum(0);
    Index d, h, w;
    for (int64_t i = threadIdx.x; i < positions_count; i += blockDim.x) {
      const Place<Index> from = positions(i);
      if (!g.axis[0].input_at(from.d, tap.d, d) || !g.axis[1].input_at(from.h, tap.h, h) ||
          !g.axis[2].input_at(from.w, tap.w, w))
        continue;
      sum += static_cast<Math>(output.plane(from.outer, tap.outer)[output.offset(from.d, from.h, from.w)]) *
             static_cast<Math>(input.plane(from.outer, channel)[input.offset(d, h, w)]);
    }
    return sum;
  }
  // By all threads of the block, whose row has tap `number`, which may lie beyond the last.
  __device__ void run(int64_t number) const {
    const bool exists = number < taps_count;
    const Place<Index> tap = taps(exists ? number : 0);
    const Math sum = sum_row(exists ? sum_of_thread(tap) : Math(0));
    if (exists && threadIdx.x == 0) {
      weight.plane(tap.outer, 0)[weight.offset(tap.d, tap.h, tap.w)] = static_cast<T>(sum);
    }
  }
};

template <class T, class Index>
__global__ void depthwise_weight_kernel(const __grid_constant__ DepthwiseWeight<T, Index> sums) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < sums.taps_count; first += step) {
    sums.run(first + threadIdx.y);
  }
}

template <class Index>
Places<Index> places_of(const Tensor& t, int64_t inner = 1) {
  const auto to = [](int64_t n) { return static_cast<Index>(n); };
  return {to(t.size(2)), to(t.size(3)), to(t.size(4)), to(inner)};
}

// Whether 32 bits hold the linear indices, the offsets, and the positions of all taps.
bool is_narrow(const Tensor& input, const Tensor& weight, const Tensor& output, const ConvGeometry& g) {
  constexpr double kLimit = 1 << 30;
  for (const Tensor* t : {&input, &weight, &output}) {
    double span = 1;
    for (int64_t d = 0; d < 5; ++d) span += static_cast<double>(t->size(d) - 1) * static_cast<double>(t->stride(d));
    if (span >= kLimit || static_cast<double>(t->numel()) >= kLimit) return false;
  }
  double reach = 0;
  for (size_t a = 0; a < 3; ++a) {
    const auto d = static_cast<int64_t>(a) + 2;
    const auto product = [](int64_t x, int64_t y) { return static_cast<double>(x) * static_cast<double>(y); };
    reach = std::max({reach, product(output.size(d), g.stride[a]), product(weight.size(d), g.dilation[a]),
                      product(input.size(d) + g.padding[a], 1)});
  }
  return reach < kLimit;
}

// `t` with neighbours in memory along its rows. Threads that share a sum read it in that order.
Tensor with_rows(const Tensor& t) { return t.size(4) == 1 || t.stride(4) <= 1 ? t : native::clone_contiguous(t); }

struct DepthwiseLoop {
  template <class T>
  static void run(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                  const Tensor& bias, const ConvGeometry& geometry) {
    is_narrow(input, weight, output, geometry) ? run_as<T, int32_t>(direction, input, weight, output, bias, geometry)
                                               : run_as<T, int64_t>(direction, input, weight, output, bias, geometry);
  }

 private:
  template <class T, class Index>
  static void run_as(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                     const Tensor& bias, const ConvGeometry& geometry) {
    const DepthwiseGeometry<Index> g(input, weight, output, geometry);
    switch (direction) {
      case ConvDirection::Output:
        return sum<T, Index, false>(kernels::convolution.name(), g, output, input, weight, bias);
      case ConvDirection::InputGradient:
        return sum<T, Index, true>(kernels::convolution_transpose.name(), g, input, output, weight, bias);
      case ConvDirection::WeightGradient: return sum_weight<T, Index>(g, weight, output, input);
    }
  }
  template <class T, class Index, bool kTransposed>
  static void sum(const char* op, const DepthwiseGeometry<Index>& g, const Tensor& result, const Tensor& source,
                  const Tensor& weight, const Tensor& bias) {
    const int64_t channels = result.size(1);
    const bool channels_last = result.stride(1) == 1 && result.stride(4) > 1;
    for_each_index(op, result.numel(),
                   DepthwiseSum<T, Index, kTransposed>{
                       g, Volumes<T, Index>(result), Volumes<const T, Index>(source), Volumes<const T, Index>(weight),
                       bias.defined() ? bias.data_ptr<T>() : nullptr,
                       bias.defined() ? static_cast<Index>(bias.stride(0)) : Index(0),
                       places_of<Index>(result, channels_last ? channels : 1),
                       IndexDivider<Index>(static_cast<Index>(channels)), channels_last});
  }
  template <class T, class Index>
  static void sum_weight(const DepthwiseGeometry<Index>& g, const Tensor& weight, const Tensor& output,
                         const Tensor& input) {
    const int64_t taps = weight.numel(), positions = output.numel() / output.size(1);
    constexpr int kEach = 16;  // positions for a thread, before their row becomes longer
    const RowLaunch shape(taps, positions, kEach, int64_t{1} << 16);
    launch_kernel(kernels::convolution_weight.name(), depthwise_weight_kernel<T, Index>, {shape.grid, shape.block},
                  DepthwiseWeight<T, Index>{g, Volumes<T, Index>(weight), Volumes<const T, Index>(output),
                                            Volumes<const T, Index>(input), places_of<Index>(weight),
                                            places_of<Index>(output), taps, positions});
  }
};

}  // namespace

bool depthwise_convolution(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                           const Tensor& bias, const ConvGeometry& geometry) {
  const bool has_depth = input.size(2) > 1 || weight.size(2) > 1;
  if (!has_depth || geometry.groups == 1 || weight.size(1) != 1 || !input.is_floating_point()) return false;
  const bool sums_rows = direction == ConvDirection::WeightGradient;
  const Tensor in = sums_rows ? with_rows(input) : input, out = sums_rows ? with_rows(output) : output;
  if (out.device().is_meta()) return true;
  pick<DepthwiseLoop>(RealFloatTypes(), in.scalar_type(), "convolution")(direction, in, weight, out, bias, geometry);
  return true;
}

}  // namespace rush::cuda
