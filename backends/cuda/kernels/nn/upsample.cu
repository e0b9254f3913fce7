#include "core/ops/nn/upsample.h"

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
  int64_t inputs, outputs;
  int64_t* index;
  Math* weight;
  // For the backward pass: outputs [first[i], last[i]) depend on input element i.
  int64_t *first, *last;

  // The number of outputs whose last (`highest`) or first index is below `i`: neither falls from one to the next.
  __device__ int64_t outputs_below(int64_t i, bool highest) const {
    int64_t low = 0, high = outputs;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      int64_t extreme = index[middle * count];
      for (int k = 1; k < count; ++k) {
        const int64_t next = index[middle * count + k];
        extreme = highest ? std::max(extreme, next) : std::min(extreme, next);
      }
      (extreme < i ? low : high) = extreme < i ? middle + 1 : middle;
    }
    return low;
  }
};

template <class T>
struct FillTaps {
  functors::TapRule<T> rule[3];
  DeviceTaps<opmath_t<T>> taps[3];

  __device__ void operator()(int64_t o) const {
    int axis = 0;
    while (o >= taps[axis].outputs) o -= taps[axis++].outputs;
    const auto& to = taps[axis];
    rule[axis](o, to.index + o * to.count, to.weight + o * to.count);
  }
};

template <class Math>
struct FillRanges {
  DeviceTaps<Math> taps[3];

  __device__ void operator()(int64_t i) const {
    int axis = 0;
    while (i >= taps[axis].inputs) i -= taps[axis++].inputs;
    taps[axis].first[i] = taps[axis].outputs_below(i, true);
    taps[axis].last[i] = taps[axis].outputs_below(i + 1, false);
  }
};

// The device makes the tables: one entry for each position of an axis.
template <class T>
class TapTables {
 public:
  using Math = opmath_t<T>;
  TapTables(const char* op, const UpsampleGeometry& g, bool with_ranges)
      : TapTables(op, {{functors::TapRule<T>(g, 0), functors::TapRule<T>(g, 1), functors::TapRule<T>(g, 2)}, {}},
                  with_ranges) {}

  DeviceTaps<Math> device[3];

 private:
  TapTables(const char* op, FillTaps<T> fill, bool with_ranges) : scratch_(bytes_of(fill)) {
    auto* at = scratch_.template as<int64_t>();  // an entry of any kind takes eight bytes
    const auto take = [&](int64_t entries) {
      at += entries;
      return at - entries;
    };
    int64_t inputs = 0, outputs = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const UpsampleAxis& a = fill.rule[axis].axis;
      const int count = fill.rule[axis].count;
      device[axis] = {count,
                      a.input,
                      a.output,
                      take(a.output * count),
                      reinterpret_cast<Math*>(take(a.output * count)),
                      take(a.input),
                      take(a.input)};
      fill.taps[axis] = device[axis];
      inputs += a.input;
      outputs += a.output;
    }
    for_each_index(op, outputs, fill);
    if (with_ranges) for_each_index(op, inputs, FillRanges<Math>{device[0], device[1], device[2]});
  }
  static size_t bytes_of(const FillTaps<T>& fill) {
    int64_t entries = 0;
    for (const functors::TapRule<T>& rule : fill.rule) entries += 2 * (rule.axis.output * rule.count + rule.axis.input);
    return static_cast<size_t>(entries) * sizeof(int64_t);
  }

  Scratch scratch_;
};

// The position of an element of a tensor laid out as outer x depth x height x width x inner.
struct Place {
  int64_t outer, d, h, w, inner;
};

// Finds it from the element's number: Note [Division by multiplication].
class Places {
 public:
  Places(const UpsampleGeometry& g, int64_t UpsampleAxis::*size)
      : size_{g.inner, g.axis[2].*size, g.axis[1].*size, g.axis[0].*size} {
    narrow_ = g.outer * size_[0] * size_[1] * size_[2] * size_[3] < int64_t{1} << 31;
    for (int d = 0; narrow_ && d < 4; ++d) divider_[d] = Divider(static_cast<uint32_t>(size_[d]));
  }
  __device__ Place operator()(int64_t i) const {
    int64_t position[4];
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      const int64_t rest = narrow_ ? divider_[d].quotient(static_cast<uint32_t>(i)) : i / size_[d];
      position[d] = i - rest * size_[d];
      i = rest;
    }
    return {i, position[3], position[2], position[1], position[0]};
  }

 private:
  int64_t size_[4];
  Divider divider_[4];
  bool narrow_;
};

// out = the sum over the taps of all three axes. Usually only some axes have more than one tap.
template <class T, class Math>
struct Gather {
  UpsampleGeometry g;
  Places places;
  DeviceTaps<Math> depth, height, width;
  T* out;
  const T* in;

  __device__ void operator()(int64_t i) const {
    const Place at = places(i);
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
  Places places;
  DeviceTaps<Math> depth, height, width;
  T* out;
  const T* in;

  __device__ void operator()(int64_t i) const {
    const Place at = places(i);
    const int64_t row = (at.outer * g.axis[0].input + depth.index[at.d]) * g.axis[1].input + height.index[at.h];
    out[i] = in[(row * g.axis[2].input + width.index[at.w]) * g.inner + at.inner];
  }
};

// Each thread sums the gradients of the outputs that depend on its input element, in their order and without atomics.
template <class T, class Math>
struct SumBack {
  UpsampleGeometry g;
  Places places;
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
    const Place at = places(i);
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
    const TapTables<Math> tables("upsample", g, false);
    for_each_index("upsample", output.numel(),
                   Pick<T, Math>{g, Places(g, &UpsampleAxis::output), tables.device[0], tables.device[1],
                                 tables.device[2], output.data_ptr<T>(), input.data_ptr<T>()});
  }
};

struct SmoothLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    using Math = opmath_t<T>;
    const TapTables<T> tables("upsample", g, false);
    for_each_index("upsample", output.numel(),
                   Gather<T, Math>{g, Places(g, &UpsampleAxis::output), tables.device[0], tables.device[1],
                                   tables.device[2], output.data_ptr<T>(), input.data_ptr<T>()});
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const UpsampleGeometry& g) {
    using Math = opmath_t<T>;
    const TapTables<T> tables("upsample_backward", g, true);
    for_each_index("upsample_backward", grad_input.numel(),
                   SumBack<T, Math>{g, Places(g, &UpsampleAxis::input), tables.device[0], tables.device[1],
                                    tables.device[2], grad_input.data_ptr<T>(), grad_output.data_ptr<T>()});
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
