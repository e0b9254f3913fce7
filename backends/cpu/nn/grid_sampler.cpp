#include "core/ops/nn/grid_sampler.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/grid_sampler.h"
#include "backends/functors/optional_data.h"

namespace rush::cpu {

namespace {

// The pixels around points are computed for a block of them, which all channels then use.
constexpr int64_t kBlock = 64;
// Where threads share the channels of an image, each computes them again.
constexpr int64_t kChannelsEach = 16;

// body(image, first point, end) for all blocks of points of all images.
template <class Body>
void for_each_block(const GridGeometry& g, const Body& body) {
  const int64_t blocks = (g.points + kBlock - 1) / kBlock;
  const int64_t work = kBlock * std::max<int64_t>(1, g.channels) * 8;
  parallel_for(0, g.images * blocks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kBlock;
      body(b / blocks, first, std::min(first + kBlock, g.points));
    }
  });
}

// The pixels around a block of points, and once more, one tap of all points after the other: loops over the points run
// in vectors, which gather.
template <class T, class Pixels>
struct PixelBlock {
  using Math = opmath_t<T>;

  PixelBlock(const GridGeometry& g, const T* grid, int64_t n, int64_t first, int64_t end) : count(end - first) {
    for (int64_t p = 0; p < count; ++p) {
      pixels[p] = Pixels(g, grid + (n * g.points + first + p) * g.dims);
      for (int k = 0; k < Pixels::kCount; ++k) {
        at[k][p] = pixels[p].at[k];
        weight[k][p] = pixels[p].weight[k];
      }
    }
  }
  // The value of each point in a plane, as GridPixels::sample computes one.
  void sample(const T* plane, T* to) const {
#pragma GCC ivdep
    for (int64_t p = 0; p < count; ++p) {
      Math sum = 0;
#pragma GCC unroll 16
      for (int k = 0; k < Pixels::kCount; ++k) {
        const auto term = static_cast<Math>(static_cast<T>(value(plane, k, p) * weight[k][p]));
        sum = static_cast<Math>(static_cast<T>(sum + (at[k][p] < 0 ? Math(0) : term)));
      }
      to[p] = static_cast<T>(sum);
    }
  }
  // Of tap k of point p; outside of the image it is any.
  Math value(const T* plane, int k, int64_t p) const {
    return static_cast<Math>(plane[std::max<int64_t>(at[k][p], 0)]);
  }

  int64_t count;
  Pixels pixels[kBlock];
  int64_t at[Pixels::kCount][kBlock];
  Math weight[Pixels::kCount][kBlock];
};

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& grid, const GridGeometry& g) {
    const T *in = input.data_ptr<T>(), *points = grid.data_ptr<T>();
    T* out = output.data_ptr<T>();
    functors::with_grid_pixels<T>(g, [&]<class Pixels>(Pixels) {
      for_each_block(g, [&](int64_t n, int64_t first, int64_t end) {
        const PixelBlock<T, Pixels> block(g, points, n, first, end);
        for (int64_t c = n * g.channels; c < (n + 1) * g.channels; ++c) {
          block.sample(in + c * g.plane(), out + c * g.points + first);
        }
      });
    });
  }
};

// A thread has some planes, and goes through the points in their order. What falls outside is added to a number past
// the plane's end: a branch for each would be mispredicted.
template <class T, class Pixels>
void input_gradient(T* grad_input, const T* grad, const T* grid, const GridGeometry& g) {
  using Math = opmath_t<T>;
  const int64_t plane = g.plane(), groups = (g.channels + kChannelsEach - 1) / kChannelsEach;
  parallel_for(0, g.images * groups, 1, [&](int64_t begin, int64_t end) {
    std::vector<Math> sums;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / groups, from = task % groups * kChannelsEach;
      const int64_t count = std::min(kChannelsEach, g.channels - from), channel = n * g.channels + from;
      sums.assign(static_cast<size_t>(count * (plane + 1)), Math(0));
      for (int64_t first = 0; first < g.points; first += kBlock) {
        const PixelBlock<T, Pixels> block(g, grid, n, first, std::min(first + kBlock, g.points));
        for (int64_t c = 0; c < count; ++c) {
          Math* sum = sums.data() + c * (plane + 1);
          for (int64_t p = 0; p < block.count; ++p) {
            const Pixels& around = block.pixels[p];
            const auto value = static_cast<Math>(grad[(channel + c) * g.points + first + p]);
            for (int k = 0; k < Pixels::kCount; ++k) {
              sum[around.at[k] < 0 ? plane : around.at[k]] += value * around.weight[k];
            }
          }
        }
      }
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t i = 0; i < plane; ++i) {
          grad_input[(channel + c) * plane + i] = static_cast<T>(sums[static_cast<size_t>(c * (plane + 1) + i)]);
        }
      }
    }
  });
}

template <class T, class Pixels>
void grid_gradient(T* grad_grid, const T* grad, const T* input, const T* grid, const GridGeometry& g) {
  using Math = opmath_t<T>;
  for_each_block(g, [&](int64_t n, int64_t first, int64_t end) {
    const PixelBlock<T, Pixels> block(g, grid, n, first, end);
    Math by_weight[Pixels::kCount][kBlock] = {};
    for (int64_t c = n * g.channels; c < (n + 1) * g.channels; ++c) {
      const T *plane = input + c * g.plane(), *from = grad + c * g.points + first;
      for (int k = 0; k < Pixels::kCount; ++k) {
        for (int64_t p = 0; p < block.count; ++p) {
          by_weight[k][p] += static_cast<Math>(from[p]) * block.value(plane, k, p);
        }
      }
    }
    for (int64_t p = 0; p < block.count; ++p) {
      Math of_point[Pixels::kCount];
      for (int k = 0; k < Pixels::kCount; ++k) of_point[k] = by_weight[k][p];
      T* to = grad_grid + (n * g.points + first + p) * g.dims;
      for (int d = 0; d < g.dims; ++d) {
        to[g.dims - 1 - d] = static_cast<T>(block.pixels[p].gradient(d, of_point));
      }
    }
  });
}

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_grid, const Tensor& grad_output, const Tensor& input,
                  const Tensor& grid, const GridGeometry& g) {
    const T *grad = grad_output.data_ptr<T>(), *in = input.data_ptr<T>(), *points = grid.data_ptr<T>();
    functors::with_grid_pixels<T>(g, [&]<class Pixels>(Pixels) {
      if (T* to = data_or_null<T>(grad_input)) input_gradient<T, Pixels>(to, grad, points, g);
      if (T* to = data_or_null<T>(grad_grid)) grid_gradient<T, Pixels>(to, grad, in, points, g);
    });
  }
};

}  // namespace

void register_grid_sampler() {
  set_by_dtype<kernels::grid_sampler, ForwardLoop, RealFloatTypes>(kCPU);
  set_by_dtype<kernels::grid_sampler_backward, BackwardLoop, RealFloatTypes, 2>(kCPU);
}

}  // namespace rush::cpu
