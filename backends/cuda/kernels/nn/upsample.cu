#include "core/ops/nn/upsample.h"

#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/upsample_taps.h"
#include "core/ops/factory/factories.h"

namespace rush::cuda {

namespace {

// The taps of one dimension's output elements on the device: entry o * count + k is tap k of output o.
template <class Math>
struct DeviceTaps {
  int count;
  const int64_t* index;
  const Math* weight;
  // For the backward pass: outputs [first[i], last[i]) depend on input element i.
  const int64_t* first;
  const int64_t* last;
};

// The host makes the tables and copies them to the device in one copy. They are small: one entry for each position of
// an axis.
template <class Math>
class TapTables {
 public:
  TapTables(const UpsampleGeometry& g, const std::array<functors::AxisTaps<Math>, 3>& taps, bool with_ranges)
      : bytes_(size_of(g, taps)), scratch_(bytes_.size()) {
    size_t at = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const auto& t = taps[static_cast<size_t>(axis)];
      device[axis].count = t.count;
      device[axis].index = append(t.index, at);
      device[axis].weight = append(t.weight, at);
      std::vector<int64_t> first(static_cast<size_t>(g.axis[axis].input), g.axis[axis].output);
      std::vector<int64_t> last(static_cast<size_t>(g.axis[axis].input), 0);
      if (with_ranges) {
        for (size_t i = 0; i < t.index.size(); ++i) {
          const auto o = static_cast<int64_t>(i) / t.count;
          const auto to = static_cast<size_t>(t.index[i]);
          first[to] = std::min(first[to], o);
          last[to] = std::max(last[to], o + 1);
        }
      }
      device[axis].first = append(first, at);
      device[axis].last = append(last, at);
    }
    check_not_capturing("a copy of an interpolation's taps");
    // From pageable memory: staged before the call returns.
    RUSH_CUDA_CHECK(cudaMemcpyAsync(scratch_.data(), bytes_.data(), at, cudaMemcpyHostToDevice, current_stream()));
  }

  DeviceTaps<Math> device[3];

 private:
  static size_t size_of(const UpsampleGeometry& g, const std::array<functors::AxisTaps<Math>, 3>& taps) {
    size_t total = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      total += taps[axis].index.size() * 16 + static_cast<size_t>(g.axis[axis].input) * 16 + 64;
    }
    return total;
  }
  template <class T>
  const T* append(const std::vector<T>& values, size_t& at) {
    at = (at + 7) / 8 * 8;
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(T));
    const T* result = reinterpret_cast<const T*>(scratch_.template as<char>() + at);
    at += values.size() * sizeof(T);
    return result;
  }

  std::vector<char> bytes_;
  Scratch scratch_;
};

// The position of an element of a tensor laid out as outer x depth x height x width x inner.
struct Place {
  int64_t outer, d, h, w, inner;
  __device__ Place(const UpsampleGeometry& g, int64_t i, int64_t depth, int64_t height, int64_t width) {
    inner = i % g.inner;
    i /= g.inner;
    w = i % width;
    i /= width;
    h = i % height;
    i /= height;
    d = i % depth;
    outer = i / depth;
  }
};

// out = the sum over the taps of all three axes. Usually only some axes have more than one tap.
template <class T, class Math>
struct Gather {
  UpsampleGeometry g;
  DeviceTaps<Math> depth, height, width;
  T* out;
  const T* in;

  __device__ void operator()(int64_t i) const {
    const Place at(g, i, g.axis[0].output, g.axis[1].output, g.axis[2].output);
    Math sum = 0;
    for (int kd = 0; kd < depth.count; ++kd) {
      const int64_t plane = at.outer * g.axis[0].input + depth.index[at.d * depth.count + kd];
      for (int kh = 0; kh < height.count; ++kh) {
        const int64_t row = plane * g.axis[1].input + height.index[at.h * height.count + kh];
        const Math share = depth.weight[at.d * depth.count + kd] * height.weight[at.h * height.count + kh];
        Math along = 0;
        for (int kw = 0; kw < width.count; ++kw) {
          const int64_t tap = at.w * width.count + kw;
          along += width.weight[tap] *
                   static_cast<Math>(in[(row * g.axis[2].input + width.index[tap]) * g.inner + at.inner]);
        }
        sum += share * along;
      }
    }
    out[i] = static_cast<T>(sum);
  }
};

// Nearest modes only move elements.
template <class T, class Math>
struct Pick {
  UpsampleGeometry g;
  DeviceTaps<Math> depth, height, width;
  T* out;
  const T* in;

  __device__ void operator()(int64_t i) const {
    const Place at(g, i, g.axis[0].output, g.axis[1].output, g.axis[2].output);
    const int64_t row = (at.outer * g.axis[0].input + depth.index[at.d]) * g.axis[1].input + height.index[at.h];
    out[i] = in[(row * g.axis[2].input + width.index[at.w]) * g.inner + at.inner];
  }
};

// Each thread sums the gradients of the outputs that depend on its input element, in their order and without atomics.
template <class T, class Math>
struct SumBack {
  UpsampleGeometry g;
  DeviceTaps<Math> depth, height, width;
  T* grad_in;
  const T* grad_out;

  // The weight of input `i` in output `o`: clamping to the border may have made several taps the same.
  static __device__ Math weight_of(const DeviceTaps<Math>& taps, int64_t o, int64_t i) {
    Math sum = 0;
    for (int k = 0; k < taps.count; ++k) {
      if (taps.index[o * taps.count + k] == i) sum += taps.weight[o * taps.count + k];
    }
    return sum;
  }
  __device__ void operator()(int64_t i) const {
    const Place at(g, i, g.axis[0].input, g.axis[1].input, g.axis[2].input);
    Math sum = 0;
    for (int64_t d = depth.first[at.d]; d < depth.last[at.d]; ++d) {
      const Math of_depth = weight_of(depth, d, at.d);
      for (int64_t h = height.first[at.h]; h < height.last[at.h]; ++h) {
        const Math of_row = of_depth * weight_of(height, h, at.h);
        const int64_t row = (at.outer * g.axis[0].output + d) * g.axis[1].output + h;
        Math along = 0;
        for (int64_t w = width.first[at.w]; w < width.last[at.w]; ++w) {
          along += weight_of(width, w, at.w) *
                   static_cast<Math>(grad_out[(row * g.axis[2].output + w) * g.inner + at.inner]);
        }
        sum += of_row * along;
      }
    }
    grad_in[i] = static_cast<T>(sum);
  }
};

struct NearestLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    using Math = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const TapTables<Math> tables(g, functors::all_taps<Math>(g), false);
    for_each_index("upsample", output.numel(),
                   Pick<T, Math>{g, tables.device[0], tables.device[1], tables.device[2], output.data_ptr<T>(),
                                 input.data_ptr<T>()});
  }
};

struct SmoothLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    using Math = opmath_t<T>;
    const TapTables<Math> tables(g, functors::all_taps<T>(g), false);
    for_each_index("upsample", output.numel(),
                   Gather<T, Math>{g, tables.device[0], tables.device[1], tables.device[2], output.data_ptr<T>(),
                                   input.data_ptr<T>()});
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const UpsampleGeometry& g) {
    using Math = opmath_t<T>;
    const TapTables<Math> tables(g, functors::all_taps<T>(g), true);
    for_each_index("upsample_backward", grad_input.numel(),
                   SumBack<T, Math>{g, tables.device[0], tables.device[1], tables.device[2], grad_input.data_ptr<T>(),
                                    grad_output.data_ptr<T>()});
  }
};

// Images of bytes are resized in integers, see Note [Resizing uint8 images] in backends/cpu/nn/upsample.cpp. They come
// from files and go through the same code on the host: PyTorch's GPU does not take them at all.
void upsample_bytes(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
  const Tensor from = input.cpu(), to = empty_like(output, kCPU);
  kernels::upsample(kCPU, to, from, g);
  output.copy_(to);
}

void upsample(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
  using NearestTypes = TypeList<float, double, Half, BFloat16, uint8_t>;
  const bool nearest = g.mode == UpsampleMode::Nearest || g.mode == UpsampleMode::NearestExact;
  const ScalarType dtype = input.scalar_type();
  if (nearest) return pick<NearestLoop>(NearestTypes(), dtype, "upsample")(output, input, g);
  if (dtype == kUInt8) return upsample_bytes(output, input, g);
  pick<SmoothLoop>(RealFloatTypes(), dtype, "upsample")(output, input, g);
}

}  // namespace

void register_upsample() {
  kernels::upsample.set(kCUDA, upsample);
  set_by_dtype<kernels::upsample_backward, BackwardLoop, RealFloatTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
