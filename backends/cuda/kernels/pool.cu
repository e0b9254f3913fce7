// Max and average pooling, forward and backward, in any layout: a thread an output, or an element of the input whose
// gradient it gathers from the windows that it lies in. Nothing is added atomically, so results repeat.
#include "core/ops/pool.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/register_reductions.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

// Number i of outer x depth x height x width x inner elements.
struct Place {
  int64_t plane, d, h, w, c;
  __device__ Place(int64_t i, int64_t height, int64_t width, int64_t depth, int64_t inner) {
    c = i % inner;
    i /= inner;
    w = i % width;
    i /= width;
    h = i % height;
    i /= height;
    d = i % depth;
    plane = i / depth;
  }
};
__device__ Place output_place(const PoolGeometry& g, int64_t i) {
  return Place(i, g.axis[1].output, g.axis[2].output, g.axis[0].output, g.inner);
}
__device__ Place input_place(const PoolGeometry& g, int64_t i) {
  return Place(i, g.axis[1].input, g.axis[2].input, g.axis[0].input, g.inner);
}

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
      first = lowest <= 0 ? 0 : (lowest + a.stride - 1) / a.stride;
      last = std::min<int64_t>(a.output - 1, (p + a.padding) / a.stride);
    }
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

template <class T>
struct MaxPool {
  using Math = opmath_t<T>;
  T* out;
  int64_t* indices;
  const T* in;
  PoolGeometry g;

  __device__ void operator()(int64_t i) const {
    const Place o = output_place(g, i);
    const T* plane = in + o.plane * g.input_plane() * g.inner + o.c;
    Math best = functors::lowest_of<Math>();
    int64_t where =
        (g.axis[0].begin(o.d) * g.axis[1].input + g.axis[1].begin(o.h)) * g.axis[2].input + g.axis[2].begin(o.w);
    for_each_tap(g, o, [&](int64_t at) {
      const Math value = static_cast<Math>(plane[at * g.inner]);
      if (value > best || value != value) {
        best = value;
        where = at;
      }
    });
    out[i] = static_cast<T>(best);
    indices[i] = where;
  }
};

template <class T>
struct MaxPoolBackward {
  using Math = opmath_t<T>;
  T* grad_in;
  const T* grad_out;
  const int64_t* indices;
  PoolGeometry g;

  __device__ void operator()(int64_t i) const {
    const Place p = input_place(g, i);
    const int64_t at = (p.d * g.axis[1].input + p.h) * g.axis[2].input + p.w, first = p.plane * g.output_plane();
    Math sum(0);
    for_each_window(g, p, [&](int64_t, int64_t, int64_t, int64_t o) {
      const int64_t from = (first + o) * g.inner + p.c;
      if (indices[from] == at) sum += static_cast<Math>(grad_out[from]);
    });
    grad_in[i] = static_cast<T>(sum);
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
  PoolDivisor divisor;

  __device__ void operator()(int64_t i) const {
    const Place o = output_place(g, i);
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
  PoolDivisor divisor;

  __device__ static bool holds(const PoolAxis& axis, int64_t o, int64_t p) {
    return axis.begin(o) <= p && p < axis.end(o);
  }
  __device__ void operator()(int64_t i) const {
    const Place p = input_place(g, i);
    const T* plane = grad_out + p.plane * g.output_plane() * g.inner + p.c;
    Math sum(0);
    for_each_window(g, p, [&](int64_t d, int64_t h, int64_t w, int64_t o) {
      if (!holds(g.axis[0], d, p.d) || !holds(g.axis[1], h, p.h) || !holds(g.axis[2], w, p.w)) return;
      sum += static_cast<Math>(plane[o * g.inner]) / static_cast<Math>(divisor(g, d, h, w));
    });
    grad_in[i] = static_cast<T>(sum);
  }
};

struct MaxPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& g) {
    for_each_index(kernels::max_pool.name(), output.numel(),
                   MaxPool<T>{output.data_ptr<T>(), indices.data_ptr<int64_t>(), input.data_ptr<T>(), g});
  }
};
struct MaxPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices, const PoolGeometry& g) {
    const char* op = kernels::max_pool_backward.name();
    for_each_index(op, indices.numel(), CheckIndices{indices.data_ptr<int64_t>(), g.input_plane(), device_check(op)});
    for_each_index(
        op, grad_input.numel(),
        MaxPoolBackward<T>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(), indices.data_ptr<int64_t>(), g});
  }
};
struct AvgPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const PoolGeometry& g, const PoolDivisor& divisor) {
    for_each_index(kernels::avg_pool.name(), output.numel(),
                   AvgPool<T>{output.data_ptr<T>(), input.data_ptr<T>(), g, divisor});
  }
};
struct AvgPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry& g,
                  const PoolDivisor& divisor) {
    for_each_index(kernels::avg_pool_backward.name(), grad_input.numel(),
                   AvgPoolBackward<T>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(), g, divisor});
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
