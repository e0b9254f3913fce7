#include "core/ops/nn/upsample.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/places.h"
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

// Note [Planes that share their taps]
// Finding an element's position and its taps takes more instructions than the sum over them, and is the same in every
// plane. A thread therefore computes the elements at one position of kPlanes planes, which are `groups` planes apart,
// and has as many loads in flight. If 32 bits hold all linear indices, indices have 32 bits.
constexpr int kPlanes = 4;

template <class T, class Index>
class PlaneGroups {
 public:
  using Math = opmath_t<T>;

  // `written` and `read` say which of an axis's sizes each tensor has.
  PlaneGroups(T* to, const T* from, const UpsampleGeometry& g, int64_t UpsampleAxis::*written,
              int64_t UpsampleAxis::*read)
      : to_(to),
        from_(from),
        planes_(static_cast<Index>(g.outer)),
        groups_(static_cast<Index>((g.outer + kPlanes - 1) / kPlanes)),
        to_plane_(plane_of(g, written)),
        from_plane_(plane_of(g, read)),
        rows_(static_cast<Index>(g.axis[1].*read)),
        row_size_(static_cast<Index>(g.axis[2].*read * g.inner)),
        inner_(static_cast<Index>(g.inner)),
        places_(static_cast<Index>(g.axis[0].*written), static_cast<Index>(g.axis[1].*written),
                static_cast<Index>(g.axis[2].*written), static_cast<Index>(g.inner)) {}

  int64_t threads() const { return int64_t{groups_} * to_plane_; }

  // The place of thread i's elements, whose outer dimension is the number of its group.
  __device__ Place<Index> place(int64_t i) const { return places_(i); }
  // A group's plane number k of the tensor that is read; the last plane in place of those beyond it.
  __device__ const T* plane(const Place<Index>& at, int k) const {
    return from_ + std::min<Index>(at.outer + k * groups_, planes_ - 1) * from_plane_;
  }
  // Where a row, and an element of it in the innermost position of `at`, lie in a plane of that tensor.
  __device__ Index row(int64_t d, int64_t h) const {
    return (static_cast<Index>(d) * rows_ + static_cast<Index>(h)) * row_size_;
  }
  __device__ Index column(int64_t w, const Place<Index>& at) const { return static_cast<Index>(w) * inner_ + at.inner; }
  // Writes thread i's elements.
  template <class Value>
  __device__ void store(int64_t i, const Place<Index>& at, const Value (&value)[kPlanes]) const {
#pragma unroll
    for (int k = 0; k < kPlanes; ++k) {
      if (at.outer + k * groups_ < planes_) to_[i + int64_t{k * groups_} * to_plane_] = static_cast<T>(value[k]);
    }
  }

 private:
  static Index plane_of(const UpsampleGeometry& g, int64_t UpsampleAxis::*size) {
    return static_cast<Index>(g.axis[0].*size * g.axis[1].*size * g.axis[2].*size * g.inner);
  }

  T* to_;
  const T* from_;
  Index planes_, groups_, to_plane_, from_plane_, rows_, row_size_, inner_;
  Places<Index> places_;
};

// The most taps of the width that stay in registers, and up to where their number is known as the kernel is compiled.
constexpr int kMost = 9, kExact = 5;

// out = the sum over the taps of all three axes. Usually only some axes have more than one tap. Of the width, there are
// kWidth taps up to kExact, any number up to kWidth beyond it, and any number where kWidth is 0.
template <class T, class Index, int kWidth>
struct Gather {
  using Math = opmath_t<T>;
  PlaneGroups<T, Index> planes;
  DeviceTaps<Math> depth, height, width;

  __device__ void operator()(int64_t i) const {
    const Place<Index> at = planes.place(i);
    const T* plane[kPlanes];
    Math sum[kPlanes] = {};
#pragma unroll
    for (int k = 0; k < kPlanes; ++k) plane[k] = planes.plane(at, k);
    const int64_t first_w = int64_t{at.w} * width.count;
    Index column[kWidth + 1];
    Math weight[kWidth + 1];
#pragma unroll
    for (int kw = 0; kw < kWidth; ++kw) {
      if (!is_tap(kw)) continue;
      column[kw] = planes.column(width.index[first_w + kw], at);
      weight[kw] = width.weight[first_w + kw];
    }
    for (int kd = 0; kd < depth.count; ++kd) {
      const int64_t d = int64_t{at.d} * depth.count + kd;
      for (int kh = 0; kh < height.count; ++kh) {
        const int64_t h = int64_t{at.h} * height.count + kh;
        const Index row = planes.row(depth.index[d], height.index[h]);
        const Math share = depth.weight[d] * height.weight[h];
        Math along[kPlanes] = {};
        const auto add = [&](Index from, Math by) {
#pragma unroll
          for (int k = 0; k < kPlanes; ++k) along[k] += by * static_cast<Math>(plane[k][row + from]);
        };
        if constexpr (kWidth > 0) {
#pragma unroll
          for (int kw = 0; kw < kWidth; ++kw) {
            if (is_tap(kw)) add(column[kw], weight[kw]);
          }
        } else {
          for (int kw = 0; kw < width.count; ++kw) {
            add(planes.column(width.index[first_w + kw], at), width.weight[first_w + kw]);
          }
        }
#pragma unroll
        for (int k = 0; k < kPlanes; ++k) sum[k] += share * along[k];
      }
    }
    planes.store(i, at, sum);
  }
  __device__ bool is_tap(int kw) const { return kWidth <= kExact || kw < width.count; }
};

// Nearest modes only move elements.
template <class T, class Math, class Index>
struct Pick {
  PlaneGroups<T, Index> planes;
  DeviceTaps<Math> depth, height, width;

  __device__ void operator()(int64_t i) const {
    const Place<Index> at = planes.place(i);
    const Index from = planes.row(depth.index[at.d], height.index[at.h]) + planes.column(width.index[at.w], at);
    T value[kPlanes];
#pragma unroll
    for (int k = 0; k < kPlanes; ++k) value[k] = planes.plane(at, k)[from];
    planes.store(i, at, value);
  }
};

// Each thread sums the gradients of the outputs that depend on its input elements, in their order and without atomics.
template <class T, class Index>
struct SumBack {
  using Math = opmath_t<T>;
  PlaneGroups<T, Index> planes;
  DeviceTaps<Math> depth, height, width;

  // The weight of input `i` in output `o`: clamping to the border may have made several taps the same.
  static __device__ Math weight_of(const DeviceTaps<Math>& taps, int64_t o, Index i) {
    Math sum = 0;
    for (int64_t tap = o * taps.count; tap < (o + 1) * taps.count; ++tap) {
      if (static_cast<Index>(taps.index[tap]) == i) sum += taps.weight[tap];
    }
    return sum;
  }
  __device__ void operator()(int64_t i) const {
    const Place<Index> at = planes.place(i);
    const T* plane[kPlanes];
    Math sum[kPlanes] = {};
#pragma unroll
    for (int k = 0; k < kPlanes; ++k) plane[k] = planes.plane(at, k);
    const auto first_w = static_cast<Index>(width.first[at.w]), last_w = static_cast<Index>(width.last[at.w]);
    for (auto d = static_cast<Index>(depth.first[at.d]); d < depth.last[at.d]; ++d) {
      const Math of_depth = weight_of(depth, d, at.d);
      for (auto h = static_cast<Index>(height.first[at.h]); h < height.last[at.h]; ++h) {
        const Math of_row = of_depth * weight_of(height, h, at.h);
        const Index row = planes.row(d, h);
        Math along[kPlanes] = {};
        for (Index w = first_w; w < last_w; ++w) {
          const Math of_element = weight_of(width, w, at.w);
          const Index from = row + planes.column(w, at);
#pragma unroll
          for (int k = 0; k < kPlanes; ++k) along[k] += of_element * static_cast<Math>(plane[k][from]);
        }
#pragma unroll
        for (int k = 0; k < kPlanes; ++k) sum[k] += of_row * along[k];
      }
    }
    planes.store(i, at, sum);
  }
};

// Calls run(planes) with the planes of an output, or in the backward pass of an input's gradient, that is computed from
// the other tensor.
template <class T, class Run>
void with_planes(const Tensor& to, const Tensor& from, const UpsampleGeometry& g, bool backward, const Run& run) {
  const auto written = backward ? &UpsampleAxis::input : &UpsampleAxis::output;
  const auto read = backward ? &UpsampleAxis::output : &UpsampleAxis::input;
  const auto run_as = [&]<class Index>(Index) {
    run(PlaneGroups<T, Index>(to.data_ptr<T>(), from.data_ptr<T>(), g, written, read));
  };
  const bool is_narrow = std::max(to.numel(), from.numel()) < int64_t{1} << 30;
  is_narrow ? run_as(int32_t()) : run_as(int64_t());
}

struct NearestLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    using Math = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const TapTables<Math> tables("upsample", g, false);
    with_planes<T>(output, input, g, false, [&]<class Index>(const PlaneGroups<T, Index>& planes) {
      for_each_index("upsample", planes.threads(),
                     Pick<T, Math, Index>{planes, tables.device[0], tables.device[1], tables.device[2]});
    });
  }
};

struct SmoothLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const UpsampleGeometry& g) {
    const TapTables<T> tables("upsample", g, false);
    with_planes<T>(output, input, g, false, [&]<class Index>(const PlaneGroups<T, Index>& planes) {
      const auto run_with = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
        for_each_index("upsample", planes.threads(),
                       Gather<T, Index, kWidth>{planes, tables.device[0], tables.device[1], tables.device[2]});
      };
      if constexpr (sizeof(Index) == 4) {
        switch (tables.device[2].count) {
          case 2: return run_with(std::integral_constant<int, 2>());
          case 3: return run_with(std::integral_constant<int, 3>());
          case 4: return run_with(std::integral_constant<int, 4>());
          case 5: return run_with(std::integral_constant<int, 5>());
        }
        if (tables.device[2].count <= kMost) return run_with(std::integral_constant<int, kMost>());
      }
      run_with(std::integral_constant<int, 0>());
    });
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const UpsampleGeometry& g) {
    const TapTables<T> tables("upsample_backward", g, true);
    with_planes<T>(grad_input, grad_output, g, true, [&]<class Index>(const PlaneGroups<T, Index>& planes) {
      for_each_index("upsample_backward", planes.threads(),
                     SumBack<T, Index>{planes, tables.device[0], tables.device[1], tables.device[2]});
    });
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
