// Max and average pooling, forward and backward, in any layout: a thread an output, or an element of the input whose
// gradient it gathers from the windows that it lies in. Nothing is added atomically, so results repeat.
#include "core/ops/pool.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/register_reductions.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

// A number among those of outer x depth x height x width x inner elements, or vectors of them.
struct Place {
  int64_t plane, d, h, w, c;
};

// Note [Pooling of neighbouring channels]
// Where channels are innermost, a thread of max pooling has kLanes of them, 16 bytes, and finds its place and its
// windows once for all: those cost more instructions than the comparison. Elsewhere kLanes is 1.
template <class T>
inline constexpr int kPoolLanes = std::is_same_v<T, float> || is_reduced_float_v<T> ? 16 / sizeof(T) : 1;

// The geometry of vectors of `lanes` channels, to find places with.
PoolGeometry in_vectors(PoolGeometry g, int lanes) {
  g.inner /= lanes;
  return g;
}

template <class T, int kLanes>
__device__ Lanes<T, kLanes> load_lanes(const T* from) {
  return *reinterpret_cast<const Lanes<T, kLanes>*>(from);
}

// kLanes indices, in accesses of 16 bytes.
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

// Finds places from numbers. A thread does little else, so where 31 bits hold all numbers nothing is divided: see Note
// [Division by multiplication].
class Places {
 public:
  static Places of_output(const PoolGeometry& g) {
    return Places(g, g.axis[0].output, g.axis[1].output, g.axis[2].output);
  }
  static Places of_input(const PoolGeometry& g) { return Places(g, g.axis[0].input, g.axis[1].input, g.axis[2].input); }
  __device__ Place operator()(int64_t i) const {
    Place place;
    if (is_narrow_) {
      auto rest = static_cast<uint32_t>(i);
      place.c = split(rest, inner_);
      place.w = split(rest, width_);
      place.h = split(rest, height_);
      place.d = split(rest, depth_);
      place.plane = rest;
    } else {
      place.c = i % sizes_[3];
      i /= sizes_[3];
      place.w = i % sizes_[2];
      i /= sizes_[2];
      place.h = i % sizes_[1];
      i /= sizes_[1];
      place.d = i % sizes_[0];
      place.plane = i / sizes_[0];
    }
    return place;
  }

 private:
  Places(const PoolGeometry& g, int64_t depth, int64_t height, int64_t width) : sizes_{depth, height, width, g.inner} {
    const int64_t all = g.outer * depth * height * width * g.inner;
    is_narrow_ = all > 0 && all <= std::numeric_limits<int32_t>::max();
    if (!is_narrow_) return;
    inner_ = Divider(static_cast<uint32_t>(g.inner));
    width_ = Divider(static_cast<uint32_t>(width));
    height_ = Divider(static_cast<uint32_t>(height));
    depth_ = Divider(static_cast<uint32_t>(depth));
  }
  // The position along the innermost dimension; `number` becomes that of the others.
  __device__ static int64_t split(uint32_t& number, const Divider& size) {
    const uint32_t rest = size.quotient(number), position = number - rest * size.divisor;
    number = rest;
    return position;
  }

  int64_t sizes_[4];
  bool is_narrow_;
  Divider inner_, width_, height_, depth_;
};

// body(position in the plane) for every input position of an output's window.
template <class Body>
__device__ void for_each_tap(const PoolGeometry& g, const Place& o, const Body& body) {
  const PoolAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  for (int64_t d = depth.begin(o.d); d < depth.end(o.d); d += depth.dilation) {
    for (int64_t h = height.begin(o.h); h < height.end(o.h); h += height.dilation) {
      for (int64_t w = width.begin(o.w); w < width.end(o.w); w += width.dilation) {
        body((d * height.input + h) * width.input + w);
      }
    }
  }
}

// The outputs [first, last] along an axis whose windows may hold position p.
struct Windows {
  int64_t first, last;
  __device__ Windows(const PoolAxis& a, int64_t p) {
    if (a.adaptive) {
      first = p * a.output / a.input;
      last = ((p + 1) * a.output + a.input - 1) / a.input - 1;
    } else {
      const int64_t lowest = p + a.padding - (a.kernel - 1) * a.dilation;
      first = lowest <= 0 ? 0 : quotient(lowest + a.stride - 1, a.stride);
      last = std::min<int64_t>(a.output - 1, quotient(p + a.padding, a.stride));
    }
  }

 private:
  // Most strides are 1 or 2.
  __device__ static int64_t quotient(int64_t n, int64_t stride) {
    return stride == 1 ? n : stride == 2 ? n >> 1 : n / stride;
  }
};

// body(d, h, w, number in the plane) for every output whose window may hold an input position.
template <class Body>
__device__ void for_each_window(const PoolGeometry& g, const Place& p, const Body& body) {
  const Windows depth(g.axis[0], p.d), height(g.axis[1], p.h), width(g.axis[2], p.w);
  for (int64_t d = depth.first; d <= depth.last; ++d) {
    for (int64_t h = height.first; h <= height.last; ++h) {
      for (int64_t w = width.first; w <= width.last; ++w) {
        body(d, h, w, (d * g.axis[1].output + h) * g.axis[2].output + w);
      }
    }
  }
}

template <class T, int kLanes>
struct MaxPool {
  using Math = opmath_t<T>;
  T* out;
  int64_t* indices;
  const T* in;
  PoolGeometry g;
  Places places;  // of vectors

  __device__ void operator()(int64_t i) const {
    const Place o = places(i);
    const T* plane = in + o.plane * g.input_plane() * g.inner + o.c * kLanes;
    const int64_t first =
        (g.axis[0].begin(o.d) * g.axis[1].input + g.axis[1].begin(o.h)) * g.axis[2].input + g.axis[2].begin(o.w);
    Math best[kLanes];
    IndexLanes<kLanes> where;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      best[l] = functors::lowest_of<Math>();
      where.lane[l] = first;
    }
    for_each_tap(g, o, [&](int64_t at) {
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
};

template <class T, int kLanes>
struct MaxPoolBackward {
  using Math = opmath_t<T>;
  T* grad_in;
  const T* grad_out;
  const int64_t* indices;
  PoolGeometry g;
  Places places;  // of vectors

  __device__ void operator()(int64_t i) const {
    const Place p = places(i);
    const int64_t at = (p.d * g.axis[1].input + p.h) * g.axis[2].input + p.w, first = p.plane * g.output_plane();
    Math sum[kLanes];
#pragma unroll
    for (int l = 0; l < kLanes; ++l) sum[l] = Math(0);
    for_each_window(g, p, [&](int64_t, int64_t, int64_t, int64_t o) {
      const int64_t from = (first + o) * g.inner + p.c * kLanes;
      IndexLanes<kLanes> where;
      where.load(indices + from);
      const Lanes<T, kLanes> grad = load_lanes<T, kLanes>(grad_out + from);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        if (where.lane[l] == at) sum[l] += static_cast<Math>(grad.lane[l]);
      }
    });
    Lanes<T, kLanes> result;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) result.lane[l] = static_cast<T>(sum[l]);
    *reinterpret_cast<Lanes<T, kLanes>*>(grad_in + i * kLanes) = result;
  }
};

struct CheckIndices {
  const int64_t* indices;
  int64_t size;
  DeviceCheck check;
  __device__ void operator()(int64_t i) const {
    RUSH_DEVICE_CHECK(indices[i] >= 0 && indices[i] < size, check, indices[i], size);
  }
};

template <class T>
struct AvgPool {
  using Math = opmath_t<T>;
  T* out;
  const T* in;
  PoolGeometry g;
  Places places;
  PoolDivisor divisor;

  __device__ void operator()(int64_t i) const {
    const Place o = places(i);
    const T* plane = in + o.plane * g.input_plane() * g.inner + o.c;
    Math sum(0);
    for_each_tap(g, o, [&](int64_t at) { sum += static_cast<Math>(plane[at * g.inner]); });
    out[i] = static_cast<T>(sum / static_cast<Math>(divisor(g, o.d, o.h, o.w)));
  }
};

template <class T>
struct AvgPoolBackward {
  using Math = opmath_t<T>;
  T* grad_in;
  const T* grad_out;
  PoolGeometry g;
  Places places;
  PoolDivisor divisor;

  __device__ static bool holds(const PoolAxis& axis, int64_t o, int64_t p) {
    return axis.begin(o) <= p && p < axis.end(o);
  }
  __device__ void operator()(int64_t i) const {
    const Place p = places(i);
    const T* plane = grad_out + p.plane * g.output_plane() * g.inner + p.c;
    Math sum(0);
    for_each_window(g, p, [&](int64_t d, int64_t h, int64_t w, int64_t o) {
      if (!holds(g.axis[0], d, p.d) || !holds(g.axis[1], h, p.h) || !holds(g.axis[2], w, p.w)) return;
      sum += static_cast<Math>(plane[o * g.inner]) / static_cast<Math>(divisor(g, d, h, w));
    });
    grad_in[i] = static_cast<T>(sum);
  }
};

// Whether kPoolLanes neighbouring elements along `inner` are one aligned access in all of them.
template <class T>
bool is_pooled_in_vectors(const PoolGeometry& g, std::initializer_list<const void*> data) {
  if (kPoolLanes<T> == 1 || g.inner % kPoolLanes<T> != 0) return false;
  return std::all_of(data.begin(), data.end(), [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
}

struct MaxPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& g) {
    if (is_pooled_in_vectors<T>(g, {output.data_ptr(), indices.data_ptr(), input.data_ptr()})) {
      run_lanes<T, kPoolLanes<T>>(output, indices, input, g);
    } else {
      run_lanes<T, 1>(output, indices, input, g);
    }
  }

 private:
  template <class T, int kLanes>
  static void run_lanes(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& g) {
    for_each_index(kernels::max_pool.name(), output.numel() / kLanes,
                   MaxPool<T, kLanes>{output.data_ptr<T>(), indices.data_ptr<int64_t>(), input.data_ptr<T>(), g,
                                      Places::of_output(in_vectors(g, kLanes))});
  }
};
struct MaxPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices, const PoolGeometry& g) {
    const char* op = kernels::max_pool_backward.name();
    for_each_index(op, indices.numel(), CheckIndices{indices.data_ptr<int64_t>(), g.input_plane(), device_check(op)});
    if (is_pooled_in_vectors<T>(g, {grad_input.data_ptr(), grad_output.data_ptr(), indices.data_ptr()})) {
      run_lanes<T, kPoolLanes<T>>(grad_input, grad_output, indices, g);
    } else {
      run_lanes<T, 1>(grad_input, grad_output, indices, g);
    }
  }

 private:
  template <class T, int kLanes>
  static void run_lanes(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                        const PoolGeometry& g) {
    for_each_index(kernels::max_pool_backward.name(), grad_input.numel() / kLanes,
                   MaxPoolBackward<T, kLanes>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(),
                                              indices.data_ptr<int64_t>(), g, Places::of_input(in_vectors(g, kLanes))});
  }
};
struct AvgPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const PoolGeometry& g, const PoolDivisor& divisor) {
    for_each_index(kernels::avg_pool.name(), output.numel(),
                   AvgPool<T>{output.data_ptr<T>(), input.data_ptr<T>(), g, Places::of_output(g), divisor});
  }
};
struct AvgPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry& g,
                  const PoolDivisor& divisor) {
    for_each_index(
        kernels::avg_pool_backward.name(), grad_input.numel(),
        AvgPoolBackward<T>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(), g, Places::of_input(g), divisor});
  }
};

void max_pool(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& g) {
  pick<MaxPoolLoop>(RealTypes(), input.scalar_type(), "max_pool")(output, indices, input, g);
}
void max_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                       const PoolGeometry& g) {
  pick<MaxPoolBackwardLoop>(RealFloatTypes(), grad_input.scalar_type(), "max_pool_backward")(grad_input, grad_output,
                                                                                             indices, g);
}

using AvgTypes = TypeList<float, double, Half, BFloat16, int64_t>;

void avg_pool(const Tensor& output, const Tensor& input, const PoolGeometry& g, const PoolDivisor& divisor) {
  pick<AvgPoolLoop>(AvgTypes(), input.scalar_type(), "avg_pool")(output, input, g, divisor);
}
void avg_pool_backward(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry& g,
                       const PoolDivisor& divisor) {
  pick<AvgPoolBackwardLoop>(RealFloatTypes(), grad_input.scalar_type(), "avg_pool_backward")(grad_input, grad_output, g,
                                                                                             divisor);
}

}  // namespace

void register_pool() {
  kernels::max_pool.set(kCUDA, max_pool);
  kernels::max_pool_backward.set(kCUDA, max_pool_backward);
  kernels::avg_pool.set(kCUDA, avg_pool);
  kernels::avg_pool_backward.set(kCUDA, avg_pool_backward);
}

}  // namespace rush::cuda
