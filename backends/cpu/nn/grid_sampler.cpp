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

template <class Pixels, class T>
void set_pixels(std::vector<Pixels>& pixels, const GridGeometry& g, const T* grid, int64_t n, int64_t first,
                int64_t end) {
  pixels.resize(static_cast<size_t>(kBlock));
  for (int64_t p = first; p < end; ++p) {
    pixels[static_cast<size_t>(p - first)] = Pixels(g, grid + (n * g.points + p) * g.dims);
  }
}

struct ForwardLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& grid, const GridGeometry& g) {
    const T *in = input.data_ptr<T>(), *points = grid.data_ptr<T>();
    T* out = output.data_ptr<T>();
    functors::with_grid_pixels<T>(g, [&]<class Pixels>(Pixels) {
      for_each_block(g, [&](int64_t n, int64_t first, int64_t end) {
        thread_local std::vector<Pixels> pixels;
        set_pixels(pixels, g, points, n, first, end);
        for (int64_t c = n * g.channels; c < (n + 1) * g.channels; ++c) {
          const T* plane = in + c * g.plane();
          T* to = out + c * g.points + first;
          for (int64_t p = 0; p < end - first; ++p) to[p] = pixels[static_cast<size_t>(p)].sample(plane);
        }
      });
    });
  }
};

// A thread has some planes, and goes through the points in their order.
template <class T, class Pixels>
void input_gradient(T* grad_input, const T* grad, const T* grid, const GridGeometry& g) {
  using Math = opmath_t<T>;
  const int64_t plane = g.plane(), groups = (g.channels + kChannelsEach - 1) / kChannelsEach;
  parallel_for(0, g.images * groups, 1, [&](int64_t begin, int64_t end) {
    std::vector<Pixels> pixels;
    std::vector<Math> sums;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / groups, from = task % groups * kChannelsEach;
      const int64_t count = std::min(kChannelsEach, g.channels - from), channel = n * g.channels + from;
      sums.assign(static_cast<size_t>(count * plane), Math(0));
      for (int64_t first = 0; first < g.points; first += kBlock) {
        const int64_t last = std::min(first + kBlock, g.points);
        set_pixels(pixels, g, grid, n, first, last);
        for (int64_t c = 0; c < count; ++c) {
          Math* sum = sums.data() + c * plane;
          for (int64_t p = first; p < last; ++p) {
            const Pixels& around = pixels[static_cast<size_t>(p - first)];
            const auto value = static_cast<Math>(grad[(channel + c) * g.points + p]);
            for (int k = 0; k < Pixels::kCount; ++k) {
              if (around.at[k] >= 0) sum[around.at[k]] += value * around.weight[k];
            }
          }
        }
      }
      T* to = grad_input + channel * plane;
      for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
    }
  });
}

template <class T, class Pixels>
void grid_gradient(T* grad_grid, const T* grad, const T* input, const T* grid, const GridGeometry& g) {
  using Math = opmath_t<T>;
  for_each_block(g, [&](int64_t n, int64_t first, int64_t end) {
    thread_local std::vector<Pixels> pixels;
    set_pixels(pixels, g, grid, n, first, end);
    Math by_weight[kBlock][Pixels::kCount] = {};
    for (int64_t c = n * g.channels; c < (n + 1) * g.channels; ++c) {
      const T *plane = input + c * g.plane(), *from = grad + c * g.points + first;
      for (int64_t p = 0; p < end - first; ++p) {
        const Pixels& around = pixels[static_cast<size_t>(p)];
        for (int k = 0; k < Pixels::kCount; ++k) {
          if (around.at[k] < 0) continue;
          by_weight[p][k] += static_cast<Math>(from[p]) * static_cast<Math>(plane[around.at[k]]);
        }
      }
    }
    for (int64_t p = 0; p < end - first; ++p) {
      T* to = grad_grid + (n * g.points + first + p) * g.dims;
      for (int d = 0; d < g.dims; ++d) {
        to[g.dims - 1 - d] = static_cast<T>(pixels[static_cast<size_t>(p)].gradient(d, by_weight[p]));
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
