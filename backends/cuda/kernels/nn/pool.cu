// Max and average pooling, forward and backward, in any layout. A thread computes an output; in the backward pass it
// computes an input element's gradient from all windows that contain it. There are no atomics, so results repeat.
#include "core/ops/nn/pool.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/places.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/fractional_pool.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

// Note [Pooling of neighbours]
// Computing an element's indices and its windows takes more instructions than comparing or adding. If channels are
// innermost, a thread of max pooling therefore has the kLanes channels of 16 bytes; in the gradient of rows it has the
// kAcross positions of 16 bytes, and visits each window that may contain one of them once. Otherwise both are 1. If 32
// bits hold all linear indices, indices have 32 bits, and Note [Division by multiplication] applies.
template <class T>
inline constexpr int kPoolLanes = std::is_same_v<T, float> || is_reduced_float_v<T> ? 16 / sizeof(T) : 1;

template <class T, int kLanes>
__device__ Lanes<T, kLanes> load_lanes(const T* from) {
  return *reinterpret_cast<const Lanes<T, kLanes>*>(from);
}

// kLanes positions in a plane, in accesses of 16 bytes.
template <int kLanes>
struct IndexLanes {
  static constexpr int kEach = kLanes == 1 ? 1 : 2;
  using Access = Lanes<int64_t, kEach>;
  int64_t lane[kLanes];

  __device__ void load(const int64_t* from) {
#pragma unroll
    for (int l = 0; l < kLanes; l += kEach) {
      const Access access = *reinterpret_cast<const Access*>(from + l);
#pragma unroll
      for (int e = 0; e < kEach; ++e) lane[l + e] = access.lane[e];
    }
  }
  __device__ void store(int64_t* to) const {
#pragma unroll
    for (int l = 0; l < kLanes; l += kEach) {
      Access access;
#pragma unroll
      for (int e = 0; e < kEach; ++e) access.lane[e] = lane[l + e];
      *reinterpret_cast<Access*>(to + l) = access;
    }
  }
};

// The places of vectors of `lanes` elements of the innermost dimension, or of `across` positions of a row.
template <class Index>
Places<Index> output_places(const PoolGeometryOf<Index>& g, int lanes = 1) {
  return {g.axis[0].output, g.axis[1].output, g.axis[2].output, g.inner / lanes};
}
template <class Index>
Places<Index> input_places(const PoolGeometryOf<Index>& g, int lanes = 1, int across = 1) {
  return {g.axis[0].input, g.axis[1].input, g.axis[2].input / across, g.inner / lanes};
}

// Calls body(position in the plane) for every input position of an output's window.
template <class Index, class Body>
__device__ void for_each_tap(const PoolGeometryOf<Index>& g, const Place<Index>& o, const Body& body) {
  const PoolAxisOf<Index>&depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  const Index last_d = depth.end(o.d), last_h = height.end(o.h), first_h = height.begin(o.h);
  const Index first_w = width.begin(o.w), across = width.end(o.w) - first_w;
  for (Index d = depth.begin(o.d); d < last_d; d += depth.dilation) {
    for (Index h = first_h; h < last_h; h += height.dilation) {
      const Index row = (d * height.input + h) * width.input + first_w;
      for (Index w = 0; w < across; w += width.dilation) body(row + w);
    }
  }
}

// The same, of which each lane of a warp gets its share.
template <class Index, class Body>
__device__ void for_each_tap_of_lane(const PoolGeometryOf<Index>& g, const Place<Index>& o, const Body& body) {
  const auto taps = [](const PoolAxisOf<Index>& a, Index window) {
    return (a.end(window) - a.begin(window) + a.dilation - 1) / a.dilation;
  };
  const PoolAxisOf<Index>&depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  const Index rows = taps(height, o.h), columns = taps(width, o.w), count = taps(depth, o.d) * rows * columns;
  const Index first_d = depth.begin(o.d), first_h = height.begin(o.h), first_w = width.begin(o.w);
  for (auto tap = static_cast<Index>(threadIdx.x); tap < count; tap += 32) {
    const Index row = tap / columns, slice = row / rows;
    const Index d = first_d + slice * depth.dilation, h = first_h + (row - slice * rows) * height.dilation;
    body((d * height.input + h) * width.input + first_w + (tap - row * columns) * width.dilation);
  }
}

// The windows that may hold an input position.
template <class Index>
class Windows {
 public:
  explicit Windows(const PoolGeometryOf<Index>& g) : g_(g), step_{step(g.axis[0]), step(g.axis[1]), step(g.axis[2])} {}

  // Calls body(linear index in the plane) for every output whose window may contain one of positions [p, p + across).
  template <class Body>
  __device__ void for_each(const Place<Index>& p, int across, const Body& body) const {
    const Index last_d = last(0, p.d), last_h = last(1, p.h), first_w = first(2, p.w),
                last_w = last(2, p.w + across - 1);
    for (Index d = first(0, p.d); d <= last_d; ++d) {
      for (Index h = first(1, p.h); h <= last_h; ++h) {
        for (Index w = first_w; w <= last_w; ++w) body((d * g_.axis[1].output + h) * g_.axis[2].output + w);
      }
    }
  }
  __device__ const PoolGeometryOf<Index>& geometry() const { return g_; }
  // The first and the last window along an axis that reach across position p. So do all between, which without
  // dilation hold it.
  __device__ Index first(int axis, Index p) const {
    const PoolAxisOf<Index>& a = g_.axis[axis];
    if (a.adaptive) return step_[axis].quotient(p * a.output);
    const Index lowest = p + a.padding - (a.kernel - 1) * a.dilation;
    return lowest <= 0 ? 0 : step_[axis].quotient(lowest + a.stride - 1);
  }
  __device__ Index last(int axis, Index p) const {
    const PoolAxisOf<Index>& a = g_.axis[axis];
    if (a.adaptive) return step_[axis].quotient((p + 1) * a.output - 1);
    return std::min<Index>(a.output - 1, step_[axis].quotient(p + a.padding));
  }

 private:
  static IndexDivider<Index> step(const PoolAxisOf<Index>& a) {
    return IndexDivider<Index>(a.adaptive ? a.input : a.stride);
  }

  PoolGeometryOf<Index> g_;
  IndexDivider<Index> step_[3];  // by stride, or of adaptive windows by the input's size
};

// The largest element of some of a window's: the first of several, or the last NaN.
template <class Math, class Index>
struct Largest {
  Math value;
  Index where;

  __device__ Largest combine(const Largest& a, const Largest& b) const {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan && b_is_nan) return a.where > b.where ? a : b;
    if (a_is_nan || b_is_nan) return a_is_nan ? a : b;
    return a.value > b.value || (a.value == b.value && a.where < b.where) ? a : b;
  }
};

template <class T, int kLanes, class Index>
struct MaxPool {
  using Math = opmath_t<T>;
  T* out;
  int64_t* indices;
  const T* in;
  PoolGeometryOf<Index> g;
  Places<Index> places;  // of vectors

  __device__ void operator()(int64_t i) const {
    const Place<Index> o = places(i);
    const T* plane = in + o.outer * g.input_plane() * g.inner + o.inner * kLanes;
    const Index first = first_tap(o);
    Math best[kLanes];
    IndexLanes<kLanes> where;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      best[l] = functors::lowest_of<Math>();
      where.lane[l] = first;
    }
    for_each_tap(g, o, [&](Index at) {
      const Lanes<T, kLanes> x = load_lanes<T, kLanes>(plane + at * g.inner);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        const Math value = static_cast<Math>(x.lane[l]);
        if (value > best[l] || value != value) {
          best[l] = value;
          where.lane[l] = at;
        }
      }
    });
    Lanes<T, kLanes> result;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) result.lane[l] = static_cast<T>(best[l]);
    *reinterpret_cast<Lanes<T, kLanes>*>(out + i * kLanes) = result;
    where.store(indices + i * kLanes);
  }
  __device__ void by_warp(int64_t i) const {
    const Place<Index> o = places(i);
    const T* plane = in + o.outer * g.input_plane();
    Largest<Math, Index> largest{functors::lowest_of<Math>(), first_tap(o)};
    for_each_tap_of_lane(g, o, [&](Index at) {
      const auto value = static_cast<Math>(plane[at]);
      if (value > largest.value || value != value) largest = {value, at};
    });
    largest = combine_row(largest, Largest<Math, Index>());
    if (threadIdx.x > 0) return;
    out[i] = static_cast<T>(largest.value);
    indices[i] = largest.where;
  }

 private:
  __device__ Index first_tap(const Place<Index>& o) const {
    return (g.axis[0].begin(o.d) * g.axis[1].input + g.axis[1].begin(o.h)) * g.axis[2].input + g.axis[2].begin(o.w);
  }
};

template <class T, int kLanes, int kAcross, class Index>
struct MaxPoolBackward {
  using Math = opmath_t<T>;
  T* grad_in;
  const T* grad_out;
  const int64_t* indices;
  Windows<Index> windows;
  Places<Index> places;  // of vectors
  DeviceCheck check;

  __device__ void operator()(int64_t i) const {
    const PoolGeometryOf<Index>& g = windows.geometry();
    Place<Index> p = places(i);
    p.w *= kAcross;
    const Index at = (p.d * g.axis[1].input + p.h) * g.axis[2].input + p.w, first = p.outer * g.output_plane();
    const int64_t size = g.input_plane();
    int64_t wrong = 0;  // a position outside of the plane
    Math sum[kAcross][kLanes];
#pragma unroll
    for (int e = 0; e < kAcross * kLanes; ++e) sum[e / kLanes][e % kLanes] = Math(0);
    windows.for_each(p, kAcross, [&](Index o) {
      const Index from = (first + o) * g.inner + p.inner * kLanes;
      IndexLanes<kLanes> where;
      where.load(indices + from);
      const Lanes<T, kLanes> grad = load_lanes<T, kLanes>(grad_out + from);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        const int64_t place = where.lane[l];
        if (place < 0 || place >= size) {
          wrong = place;
          continue;
        }
#pragma unroll
        for (int e = 0; e < kAcross; ++e) {
          if (static_cast<Index>(place) == at + e) sum[e][l] += static_cast<Math>(grad.lane[l]);
        }
      }
    });
    RUSH_DEVICE_CHECK(wrong == 0, check, wrong, size);
    Lanes<T, kAcross * kLanes> result;
#pragma unroll
    for (int e = 0; e < kAcross * kLanes; ++e) result.lane[e] = static_cast<T>(sum[e / kLanes][e % kLanes]);
    *reinterpret_cast<Lanes<T, kAcross * kLanes>*>(grad_in + i * (kAcross * kLanes)) = result;
  }
};

template <class T, class Index>
struct AvgPool {
  using Math = opmath_t<T>;
  T* out;
  const T* in;
  PoolGeometryOf<Index> g;
  Places<Index> places;
  PoolDivisor divisor;

  __device__ void operator()(int64_t i) const {
    const Place<Index> o = places(i);
    const T* plane = in + o.outer * g.input_plane() * g.inner + o.inner;
    Math sum(0);
    for_each_tap(g, o, [&](Index at) { sum += static_cast<Math>(plane[at * g.inner]); });
    store(i, o, sum);
  }
  __device__ void by_warp(int64_t i) const {
    const Place<Index> o = places(i);
    const T* plane = in + o.outer * g.input_plane();
    Math sum(0);
    for_each_tap_of_lane(g, o, [&](Index at) { sum += static_cast<Math>(plane[at]); });
    sum = sum_row(sum);
    if (threadIdx.x == 0) store(i, o, sum);
  }

 private:
  __device__ void store(int64_t i, const Place<Index>& o, Math sum) const {
    out[i] = static_cast<T>(sum / static_cast<Math>(divisor(g, o.d, o.h, o.w)));
  }
};

// A window with many elements has a warp, where there are too few windows to keep the GPU busy with a thread each, and
// where neighbours in memory are neighbours in a window. Where windows overlap so much that an element is in more than
// kMostOverlap of them, neighbouring threads read neighbours anyway.
template <class Index>
bool have_warps(const PoolGeometryOf<Index>& g) {
  constexpr int64_t kFewWindows = 1 << 17, kManyElements = 32, kMostOverlap = 4;
  int64_t elements = 1;
  for (const PoolAxisOf<Index>& a : g.axis) {
    elements *= a.adaptive ? a.input / a.output : std::min(a.input, a.kernel);
  }
  const int64_t windows = g.output_plane(), inputs = g.input_plane();
  return g.inner == 1 && elements >= kManyElements && g.outer * windows <= kFewWindows &&
         elements <= kMostOverlap * inputs / windows;
}

template <class Body>
__global__ void __launch_bounds__(kThreads) warp_kernel(const __grid_constant__ Body body, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i < n) body.by_warp(i);
}

// Calls body(i), or by all lanes of a warp body.by_warp(i), for every i in [0, n).
template <class Body, class Index>
void for_each_window(const char* op, int64_t n, const PoolGeometryOf<Index>& g, const Body& body) {
  if (!have_warps(g)) return for_each_index(op, n, body);
  const RowLaunch shape = RowLaunch::of_warps(n);
  launch_kernel(op, warp_kernel<Body>, {shape.grid, shape.block}, body, n);
}

template <class T, class Index>
struct AvgPoolBackward {
  using Math = opmath_t<T>;
  T* grad_in;
  const T* grad_out;
  Windows<Index> windows;
  Places<Index> places;
  PoolDivisor divisor;

  // Elements of a window are counted axis by axis, outside of the inner loops.
  __device__ void operator()(int64_t i) const {
    const PoolGeometryOf<Index>& g = windows.geometry();
    const Place<Index> p = places(i);
    const T* plane = grad_out + p.outer * g.output_plane() * g.inner + p.inner;
    const Index last_d = windows.last(0, p.d), last_h = windows.last(1, p.h), first_h = windows.first(1, p.h);
    const Index last_w = windows.last(2, p.w), first_w = windows.first(2, p.w);
    Math sum(0);
    for (Index d = windows.first(0, p.d); d <= last_d; ++d) {
      const int64_t of_depth = divisor.count(g.axis[0], d);
      for (Index h = first_h; h <= last_h; ++h) {
        const int64_t of_row = of_depth * divisor.count(g.axis[1], h);
        const Index row = (d * g.axis[1].output + h) * g.axis[2].output;
        for (Index w = first_w; w <= last_w; ++w) {
          const int64_t count = divisor.of(of_row * divisor.count(g.axis[2], w));
          sum += static_cast<Math>(plane[(row + w) * g.inner]) / static_cast<Math>(count);
        }
      }
    }
    grad_in[i] = static_cast<T>(sum);
  }
};

// Whether 32 bits hold all linear indices and the intermediate results that they are computed from.
bool is_narrow(const PoolGeometry& g) {
  const auto fits = [](std::initializer_list<int64_t> factors) {
    double product = 1;
    for (const int64_t factor : factors) product *= static_cast<double>(factor);
    return product < 1 << 30;
  };
  for (const PoolAxis& a : g.axis) {
    if (a.adaptive ? !fits({a.input + 1, a.output + 1}) : !fits({a.output, a.stride}) || !fits({a.kernel, a.dilation}))
      return false;
  }
  return fits({g.outer, g.inner, g.axis[0].input, g.axis[1].input, g.axis[2].input}) &&
         fits({g.outer, g.inner, g.axis[0].output, g.axis[1].output, g.axis[2].output});
}

// Calls run(geometry), with indices of 32 or 64 bits.
template <class Run>
void with_index(const PoolGeometry& g, const Run& run) {
  if (is_narrow(g)) {
    run(g.as<int32_t>());
  } else {
    run(g);
  }
}

bool are_aligned(std::initializer_list<const void*> data) {
  return std::all_of(data.begin(), data.end(), [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
}

struct MaxPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& geometry) {
    with_index(geometry, [&]<class Index>(const PoolGeometryOf<Index>& g) {
      constexpr int kLanes = sizeof(Index) == 4 ? kPoolLanes<T> : 1;
      if (g.inner % kLanes == 0 && are_aligned({output.data_ptr(), indices.data_ptr(), input.data_ptr()})) {
        run_lanes<T, kLanes>(output, indices, input, g);
      } else {
        run_lanes<T, 1>(output, indices, input, g);
      }
    });
  }

 private:
  template <class T, int kLanes, class Index>
  static void run_lanes(const Tensor& output, const Tensor& indices, const Tensor& input,
                        const PoolGeometryOf<Index>& g) {
    const MaxPool<T, kLanes, Index> pool{output.data_ptr<T>(), indices.data_ptr<int64_t>(), input.data_ptr<T>(), g,
                                         output_places(g, kLanes)};
    const char* op = kernels::max_pool.name();
    if constexpr (kLanes == 1) {
      for_each_window(op, output.numel(), g, pool);
    } else {
      for_each_index(op, output.numel() / kLanes, pool);
    }
  }
};
struct MaxPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                  const PoolGeometry& geometry) {
    with_index(geometry, [&]<class Index>(const PoolGeometryOf<Index>& g) {
      constexpr bool kNarrow = sizeof(Index) == 4;
      constexpr int kLanes = kNarrow ? kPoolLanes<T> : 1, kAcross = kNarrow ? 16 / sizeof(T) : 1;
      const bool aligned = are_aligned({grad_input.data_ptr(), grad_output.data_ptr(), indices.data_ptr()});
      if (kLanes > 1 && g.inner % kLanes == 0 && aligned) {
        run_vectors<T, kLanes, 1>(grad_input, grad_output, indices, g);
      } else if (kAcross > 1 && g.inner == 1 && g.axis[2].input % kAcross == 0 && aligned) {
        run_vectors<T, 1, kAcross>(grad_input, grad_output, indices, g);
      } else {
        run_vectors<T, 1, 1>(grad_input, grad_output, indices, g);
      }
    });
  }

 private:
  template <class T, int kLanes, int kAcross, class Index>
  static void run_vectors(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                          const PoolGeometryOf<Index>& g) {
    const char* op = kernels::max_pool_backward.name();
    for_each_index(op, grad_input.numel() / (kLanes * kAcross),
                   MaxPoolBackward<T, kLanes, kAcross, Index>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(),
                                                              indices.data_ptr<int64_t>(), Windows<Index>(g),
                                                              input_places(g, kLanes, kAcross), device_check(op)});
  }
};
struct AvgPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const PoolGeometry& geometry, const PoolDivisor& divisor) {
    with_index(geometry, [&]<class Index>(const PoolGeometryOf<Index>& g) {
      for_each_window(kernels::avg_pool.name(), output.numel(), g,
                      AvgPool<T, Index>{output.data_ptr<T>(), input.data_ptr<T>(), g, output_places(g), divisor});
    });
  }
};
struct AvgPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry& geometry,
                  const PoolDivisor& divisor) {
    with_index(geometry, [&]<class Index>(const PoolGeometryOf<Index>& g) {
      for_each_index(kernels::avg_pool_backward.name(), grad_input.numel(),
                     AvgPoolBackward<T, Index>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(), Windows<Index>(g),
                                               input_places(g), divisor});
    });
  }
};

template <class T, class Index>
struct FractionalIndices {
  functors::FractionalMax<T> where;
  Places<Index> places;
  int64_t* out;

  __device__ void operator()(int64_t i) const {
    const Place<Index> o = places(i);
    out[i] = where(o.outer, o.d, o.h, o.w);
  }
};
struct FractionalMaxLoop {
  template <class T>
  static void run(const Tensor& indices, const Tensor& input, const Tensor& samples, const FractionalGeometry& g) {
    const auto run = [&]<class Index>(Index inner) {
      const Places<Index> places(static_cast<Index>(g.axis[0].output), static_cast<Index>(g.axis[1].output),
                                 static_cast<Index>(g.axis[2].output), inner);
      for_each_index(kernels::fractional_max_pool.name(), indices.numel(),
                     FractionalIndices<T, Index>{
                         {input.data_ptr<T>(), samples.data_ptr<T>(), g}, places, indices.data_ptr<int64_t>()});
    };
    indices.numel() < int64_t{1} << 31 ? run(int32_t{1}) : run(int64_t{1});
  }
};

using AvgTypes = TypeList<float, double, Half, BFloat16, int64_t>;

}  // namespace

void register_pool() {
  set_by_dtype<kernels::max_pool, MaxPoolLoop, RealTypes, 2>(kCUDA);
  set_by_dtype<kernels::max_pool_backward, MaxPoolBackwardLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::avg_pool, AvgPoolLoop, AvgTypes, 1>(kCUDA);
  set_by_dtype<kernels::avg_pool_backward, AvgPoolBackwardLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::fractional_max_pool, FractionalMaxLoop, RealFloatTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
