// Sampling images at the points of a grid, and its gradients. The gradient of the images adds what each point's pixels
// get, sorted by pixel, so that results repeat.
#include "backends/functors/grid_sampler.h"

#include <bit>

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/stream/current_stream.h"
#include "backends/functors/optional_data.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush::cuda {

namespace {

// A thread has a point and some channels, for which it computes the pixels around the point once.
constexpr int64_t kChannelsEach = 4;

template <class T, class Pixels>
struct Sample {
  GridGeometry g;
  int64_t groups;  // of channels
  T* out;
  const T *in, *grid;

  __device__ void operator()(int64_t task) const {
    const int64_t p = task % g.points, rest = task / g.points, n = rest / groups;
    const Pixels around(g, grid + (n * g.points + p) * g.dims);
    const int64_t first = rest % groups * kChannelsEach, end = std::min(first + kChannelsEach, g.channels);
    for (int64_t c = n * g.channels + first; c < n * g.channels + end; ++c) {
      out[c * g.points + p] = around.sample(in + c * g.plane());
    }
  }
};

template <class T, class Pixels>
struct GridGradient {
  GridGeometry g;
  T* grad_grid;
  const T *grad, *in, *grid;

  __device__ void operator()(int64_t task) const {
    using Math = opmath_t<T>;
    const int64_t p = task % g.points, n = task / g.points;
    const Pixels around(g, grid + task * g.dims);
    Math by_weight[Pixels::kCount] = {};
    for (int64_t c = n * g.channels; c < (n + 1) * g.channels; ++c) {
      const Math value = static_cast<Math>(grad[c * g.points + p]);
      const T* plane = in + c * g.plane();
#pragma unroll
      for (int k = 0; k < Pixels::kCount; ++k) {
        if (around.at[k] >= 0) by_weight[k] += value * static_cast<Math>(plane[around.at[k]]);
      }
    }
    for (int d = 0; d < g.dims; ++d) {
      grad_grid[task * g.dims + g.dims - 1 - d] = static_cast<T>(around.gradient(d, by_weight));
    }
  }
};

// What the points' pixels get of the gradients: where, in the first channel, and times what.
template <class T, class Pixels>
struct PixelWeights {
  GridGeometry g;
  const T* grid;
  int64_t* offsets;
  opmath_t<T>* weights;

  __device__ void operator()(int64_t task) const {
    const Pixels around(g, grid + task * g.dims);
    const int64_t image = task / g.points * g.channels * g.plane();
#pragma unroll
    for (int k = 0; k < Pixels::kCount; ++k) {
      offsets[task * Pixels::kCount + k] = around.at[k] < 0 ? kNoOffset : image + around.at[k];
      weights[task * Pixels::kCount + k] = around.weight[k];
    }
  }
};

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& grid, const GridGeometry& g) {
    functors::with_grid_pixels<T>(g, [&]<class Pixels>(Pixels) {
      const int64_t groups = (g.channels + kChannelsEach - 1) / kChannelsEach;
      for_each_index("grid_sampler", g.images * groups * g.points,
                     Sample<T, Pixels>{g, groups, output.data_ptr<T>(), input.data_ptr<T>(), grid.data_ptr<T>()});
    });
  }
};

template <class T, class Pixels>
void input_gradient(const Tensor& grad_input, const Tensor& grad_output, const Tensor& grid, const GridGeometry& g) {
  const char* op = "grid_sampler_backward";
  RUSH_CUDA_CHECK(cudaMemsetAsync(grad_input.data_ptr(), 0, grad_input.nbytes(), current_stream()));
  const int64_t points = g.images * g.points, n = points * Pixels::kCount;
  const Scratch offsets(static_cast<size_t>(n) * sizeof(int64_t));
  const Scratch weights(static_cast<size_t>(n) * sizeof(opmath_t<T>));
  for_each_index(op, points,
                 PixelWeights<T, Pixels>{g, grid.data_ptr<T>(), offsets.as<int64_t>(), weights.as<opmath_t<T>>()});
  // (N, C, points) -> (C, N, points)
  const Tensor by_channel = native::contiguous(grad_output.transpose(0, 1));
  ScatterPlan plan{grad_input.data_ptr(), {}, {}, offsets.as<const int64_t>(), n, by_channel.data_ptr(), false};
  plan.outer.append(op, {g.channels, g.plane(), 0});
  plan.outer.prepare();
  static_assert(std::has_single_bit(unsigned{Pixels::kCount}));
  plan.shift = std::countr_zero(unsigned{Pixels::kCount});
  plan.weights = weights.data();
  scatter_combined(op, grad_input.scalar_type(), plan, grad_input.numel(), IndexWrite::Add);
}

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_grid, const Tensor& grad_output, const Tensor& input,
                  const Tensor& grid, const GridGeometry& g) {
    functors::with_grid_pixels<T>(g, [&]<class Pixels>(Pixels) {
      if (grad_input.defined() && grad_input.numel() > 0) input_gradient<T, Pixels>(grad_input, grad_output, grid, g);
      if (T* to = data_or_null<T>(grad_grid)) {
        for_each_index(
            "grid_sampler_backward", g.images * g.points,
            GridGradient<T, Pixels>{g, to, grad_output.data_ptr<T>(), input.data_ptr<T>(), grid.data_ptr<T>()});
      }
    });
  }
};

}  // namespace

void register_grid_sampler() {
  set_by_dtype<kernels::grid_sampler, ForwardLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::grid_sampler_backward, BackwardLoop, RealFloatTypes, 2>(kCUDA);
}

}  // namespace rush::cuda
