#include "core/ops/nn/pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/nn/planes.h"
#include "backends/cpu/register.h"
#include "backends/functors/binary.h"
#include "backends/functors/fractional_pool.h"

namespace rush::cpu {

namespace {

// Note [Two ways through the windows of a row]
// With channels-last data the innermost loop runs over channels, whatever the windows are. With row-major data
// (`inner` is 1) it runs over the outputs of a row, one window element ("tap") at a time: the loads are `stride` apart
// and the compiler vectorises them. Adaptive windows differ in size, so they are walked one output at a time; for a
// sum, the rows of the windows are added up first.

bool by_tap(const PoolGeometry& g) { return g.inner == 1 && !g.axis[2].adaptive; }
bool by_column(const PoolGeometry& g) { return g.inner == 1 && g.axis[2].adaptive; }

// The outputs [first, last) of a row whose window element `k` lies inside the input, at o * stride + offset. Nothing is
// divided where that is all of them, as it nearly always is: in short rows, it would take longer than the rest.
struct Tap {
  int64_t first, last, offset;
  Tap(const PoolAxis& w, int64_t k) : offset(k * w.dilation - w.padding) {
    first = offset >= 0 ? 0 : (-offset + w.stride - 1) / w.stride;
    last = (w.output - 1) * w.stride + offset < w.input ? w.output
           : w.input > offset                           ? (w.input - offset + w.stride - 1) / w.stride
                                                        : 0;
  }
};

// Calls body(tap) for every window element that lies inside the input for some output of a row; of a window larger than
// the input, most do for none.
template <class Body>
void for_each_tap(const PoolAxis& w, const Body& body) {
  const int64_t before = w.padding - (w.output - 1) * w.stride;  // what the last window, too, has in the padding
  const int64_t first = before > 0 ? (before + w.dilation - 1) / w.dilation : 0;
  const bool all = (w.kernel - 1) * w.dilation < w.input + w.padding;
  const int64_t last = all ? w.kernel : (w.input + w.padding + w.dilation - 1) / w.dilation;
  for (int64_t k = first; k < last; ++k) body(Tap(w, k));
}

// Calls body(row) for the start of every input row (in elements of a plane, before `inner`) of the windows at (d, h).
template <class Body>
void for_each_window_row(const PoolGeometry& g, int64_t d, int64_t h, const Body& body) {
  const PoolAxis &depth = g.axis[0], &height = g.axis[1];
  for (int64_t id = depth.begin(d); id < depth.end(d); id += depth.dilation) {
    for (int64_t ih = height.begin(h); ih < height.end(h); ih += height.dilation) {
      body((id * height.input + ih) * g.axis[2].input);
    }
  }
}

// The work of a row of outputs, in elements.
int64_t row_cost(const PoolGeometry& g) {
  const int64_t rows = g.axis[0].output * g.axis[1].output;
  return ((g.input_plane() + g.output_plane()) / std::max<int64_t>(rows, 1) + 1) * g.inner;
}

template <class Math>
constexpr Math lowest() {
  if constexpr (std::numeric_limits<Math>::has_infinity) {
    return -std::numeric_limits<Math>::infinity();
  } else {
    return std::numeric_limits<Math>::lowest();
  }
}

// Whether `value` takes the place of `best`. NaN takes any.
template <class Math>
RUSH_ALWAYS_INLINE bool exceeds(Math value, Math best) {
  return value > best || value != value;
}

// The largest elements so far and their positions, for a row of outputs or the channels of one: 32-bit positions keep
// pace with 32-bit values in vector registers.
template <class Math>
struct Largest {
  std::vector<Math> best;
  std::vector<int32_t> where;
  void resize(int64_t n) {
    best.resize(static_cast<size_t>(n));
    where.resize(static_cast<size_t>(n));
  }
  template <class T>
  void store(T* values, int64_t* indices) const {
    for (size_t i = 0; i < best.size(); ++i) values[i] = static_cast<T>(best[i]);
    for (size_t i = 0; i < best.size(); ++i) indices[i] = where[i];
  }
};

template <int64_t kStride, class T, class Math>
void max_of_tap(const T* row, int32_t base, const Tap& tap, int64_t stride, Math* best, int32_t* where) {
  const int64_t step = kStride ? kStride : stride;
#pragma GCC ivdep
  for (int64_t o = tap.first; o < tap.last; ++o) {
    const auto value = static_cast<Math>(row[o * step + tap.offset]);
    const bool better = exceeds(value, best[o]);
    best[o] = better ? value : best[o];
    where[o] = better ? base + static_cast<int32_t>(o * step + tap.offset) : where[o];
  }
}

template <class T, class Math>
void max_row_by_tap(const T* plane, T* out, int64_t* indices, Largest<Math>& largest, const PoolGeometry& g, int64_t d,
                    int64_t h) {
  const PoolAxis& width = g.axis[2];
  const int64_t first_row = (g.axis[0].begin(d) * g.axis[1].input + g.axis[1].begin(h)) * width.input;
  largest.resize(width.output);
  Math* best = largest.best.data();
  int32_t* where = largest.where.data();
  std::fill_n(best, width.output, lowest<Math>());
  const int64_t padded = std::min(Tap(width, 0).first, width.output);
  for (int64_t o = 0; o < padded; ++o) where[o] = static_cast<int32_t>(first_row + width.begin(o));
  for (int64_t o = padded; o < width.output; ++o) {
    where[o] = static_cast<int32_t>(first_row + o * width.stride - width.padding);
  }
  for_each_window_row(g, d, h, [&](int64_t row) {
    for_each_tap(width, [&](const Tap& tap) {
      const auto run = width.stride == 1   ? max_of_tap<1, T, Math>
                       : width.stride == 2 ? max_of_tap<2, T, Math>
                                           : max_of_tap<0, T, Math>;
      run(plane + row, static_cast<int32_t>(row), tap, width.stride, best, where);
    });
  });
  largest.store(out, indices);
}

// The largest element of one window, for each channel. With one channel, all is in registers.
template <class T, class Math, class Position>
void max_of_window(const T* plane, int64_t channels, const PoolGeometry& g, int64_t d, int64_t h, int64_t o, Math* best,
                   Position* where) {
  const PoolAxis& width = g.axis[2];
  const int64_t begin = width.begin(o), end = width.end(o);
  const auto take = [](Math value, int64_t at, Math& largest, Position& position) {
    const bool better = exceeds(value, largest);
    largest = better ? value : largest;
    position = better ? static_cast<Position>(at) : position;
  };
  for_each_window_row(g, d, h, [&](int64_t row) {
    if (channels == 1) {
      Math largest = *best;
      Position position = *where;
      for (int64_t w = begin; w < end; w += width.dilation) {
        take(static_cast<Math>(plane[row + w]), row + w, largest, position);
      }
      *best = largest;
      *where = position;
      return;
    }
    for (int64_t w = begin; w < end; w += width.dilation) {
      const T* from = plane + (row + w) * channels;
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) take(static_cast<Math>(from[c]), row + w, best[c], where[c]);
    }
  });
}

template <class T, class Math, class Position>
void max_row_by_window(const T* plane, T* out, int64_t* indices, const PoolGeometry& g, int64_t d, int64_t h) {
  static thread_local std::vector<Math> best;
  static thread_local std::vector<Position> where;
  const PoolAxis& width = g.axis[2];
  const int64_t first_row = (g.axis[0].begin(d) * g.axis[1].input + g.axis[1].begin(h)) * width.input;
  for (int64_t o = 0; o < width.output; ++o, out += g.inner, indices += g.inner) {
    best.assign(static_cast<size_t>(g.inner), lowest<Math>());
    where.assign(static_cast<size_t>(g.inner), static_cast<Position>(first_row + width.begin(o)));
    max_of_window(plane, g.inner, g, d, h, o, best.data(), where.data());
    for (int64_t c = 0; c < g.inner; ++c) out[c] = static_cast<T>(best[c]);
    for (int64_t c = 0; c < g.inner; ++c) indices[c] = where[c];
  }
}

struct MaxPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry& g) {
    using Math = opmath_t<T>;
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    int64_t* at = indices.data_ptr<int64_t>();
    const bool is_small = g.input_plane() <= std::numeric_limits<int32_t>::max();
    for_each_output_row(g, row_cost(g), [&](int64_t plane, int64_t d, int64_t h) {
      const int64_t row = output_row(g, plane, d, h);
      const T* from = in + plane * g.input_plane() * g.inner;
      if constexpr (is_floating_v<T>) {
        static thread_local Largest<Math> largest;
        if (is_small && by_tap(g)) return max_row_by_tap(from, out + row, at + row, largest, g, d, h);
      }
      if (is_small) return max_row_by_window<T, Math, int32_t>(from, out + row, at + row, g, d, h);
      max_row_by_window<T, Math, int64_t>(from, out + row, at + row, g, d, h);
    });
  }
};

// Loops that scatter, over parts of planes.
template <class Body>
void for_each_part(const PoolGeometry& g, const Body& body) {
  for_each_plane_part(g.outer, g.inner, g.input_plane() + g.output_plane(), body);
}

struct MaxPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices, const PoolGeometry& g) {
    T* in = grad_input.data_ptr<T>();
    const T* out = grad_output.data_ptr<T>();
    const int64_t* where = indices.data_ptr<int64_t>();
    const int64_t in_plane = g.input_plane(), out_plane = g.output_plane();
    for_each_part(g, [&](const PlanePart& part) {
      PlaneSums<T> sums(in + part.plane * in_plane * g.inner, in_plane, g.inner, part);
      for (int64_t o = 0; o < out_plane; ++o) {
        const int64_t from = (part.plane * out_plane + o) * g.inner;
        for (int64_t c = part.begin; c < part.end; ++c) {
          const int64_t at = where[from + c];
          RUSH_CHECK_INDEX(at >= 0 && at < in_plane, "max_pool_backward: index ", at, " is outside a plane of ",
                           in_plane, " elements");
          sums.at(at)[c - part.begin] += static_cast<opmath_t<T>>(out[from + c]);
        }
      }
      sums.store();
    });
  }
};

// acc[o] += the window elements of output o, along one input row.
template <int64_t kStride, class T>
void add_tap(const T* row, const Tap& tap, int64_t stride, opmath_t<T>* acc) {
  const int64_t step = kStride ? kStride : stride;
#pragma GCC ivdep
  for (int64_t o = tap.first; o < tap.last; ++o)
    acc[o] = functors::Add()(acc[o], static_cast<opmath_t<T>>(row[o * step + tap.offset]));
}

// In as many partial sums as the compiler likes.
template <class T>
opmath_t<T> sum_of(const T* x, int64_t n) {
  opmath_t<T> sum(0);
  constexpr int64_t kFew = 16;
  if (n < kFew) {
    for (int64_t i = 0; i < n; ++i) sum = functors::Add()(sum, static_cast<opmath_t<T>>(x[i]));
    return sum;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum = functors::Add()(sum, static_cast<opmath_t<T>>(x[i]));
  return sum;
}

// to[i] += row[i]
template <class T>
void add_columns(const T* row, int64_t n, opmath_t<T>* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = functors::Add()(to[i], static_cast<opmath_t<T>>(row[i]));
}

template <class T>
void add_row(const T* row, const PoolGeometry& g, opmath_t<T>* acc) {
  const PoolAxis& width = g.axis[2];
  if (by_column(g)) return add_columns(row, width.input, acc);
  if (by_tap(g)) {
    const auto run = width.stride == 1 ? add_tap<1, T> : width.stride == 2 ? add_tap<2, T> : add_tap<0, T>;
    for_each_tap(width, [&](const Tap& tap) { run(row, tap, width.stride, acc); });
    return;
  }
  for (int64_t o = 0; o < width.output; ++o) {
    for (int64_t w = width.begin(o); w < width.end(o); ++w) {
#pragma GCC ivdep
      for (int64_t c = 0; c < g.inner; ++c) {
        opmath_t<T>& sum = acc[o * g.inner + c];
        sum = functors::Add()(sum, static_cast<opmath_t<T>>(row[w * g.inner + c]));
      }
    }
  }
}

// PyTorch's adaptive_avg_pool3d keeps sums in the tensor's own dtype and divides them by the window's size in one
// dimension after the other: 16-bit answers are close to its only if they are rounded where it rounds them.
template <class T>
void adaptive_avg_pool3d_rounded(const Tensor& output, const Tensor& input, const PoolGeometry& g) {
  const T* in = input.data_ptr<T>();
  T* out = output.data_ptr<T>();
  const PoolAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  for_each_output_row(g, row_cost(g), [&](int64_t plane, int64_t d, int64_t h) {
    const T* from = in + plane * g.input_plane() * g.inner;
    T* to = out + output_row(g, plane, d, h);
    for (int64_t w = 0; w < width.output; ++w) {
      for (int64_t c = 0; c < g.inner; ++c) {
        T sum(0.0f);
        for_each_window_row(g, d, h, [&](int64_t row) {
          for (int64_t x = width.begin(w); x < width.end(w); ++x) {
            sum = T(static_cast<float>(sum) + static_cast<float>(from[(row + x) * g.inner + c]));
          }
        });
        for (const int64_t count : {depth.count(d), height.count(h), width.count(w)}) {
          sum = T(static_cast<float>(sum) / static_cast<float>(count));
        }
        to[w * g.inner + c] = sum;
      }
    }
  });
}

struct AvgPoolLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const PoolGeometry& g, const PoolDivisor& divisor) {
    if constexpr (is_reduced_float_v<T>) {
      if (g.axis[0].adaptive) return adaptive_avg_pool3d_rounded<T>(output, input, g);
    }
    using Math = opmath_t<T>;
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    const PoolAxis& width = g.axis[2];
    const bool alike = by_tap(g) && are_whole(width);
    for_each_output_row(g, row_cost(g), [&](int64_t plane, int64_t d, int64_t h) {
      static thread_local std::vector<Math> sums;
      sums.assign(static_cast<size_t>(by_column(g) ? width.input : width.output * g.inner), Math(0));
      const T* from = in + plane * g.input_plane() * g.inner;
      for_each_window_row(g, d, h, [&](int64_t row) { add_row(from + row * g.inner, g, sums.data()); });
      T* to = out + output_row(g, plane, d, h);
      if (alike) return store_quotients(sums.data(), static_cast<Math>(divisor(g, d, h, int64_t(0))), width.output, to);
      for (int64_t w = 0; w < width.output; ++w) {
        const auto count = static_cast<Math>(divisor(g, d, h, w));
        if (by_column(g)) {
          to[w] = static_cast<T>(sum_of(sums.data() + width.begin(w), width.count(w)) / count);
          continue;
        }
        for (int64_t i = w * g.inner; i < (w + 1) * g.inner; ++i) to[i] = static_cast<T>(sums[i] / count);
      }
    });
  }

 private:
  // Whether no window of a row reaches out of it; if so, all have one divisor.
  static bool are_whole(const PoolAxis& w) {
    const int64_t reach = (w.kernel - 1) * w.dilation + 1;
    return w.count(0) == reach && w.count(w.output - 1) == reach;
  }
  template <class T, class Math>
  static void store_quotients(const Math* sums, Math count, int64_t n, T* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[i] / count);
  }
};

struct AvgPoolBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry& g,
                  const PoolDivisor& divisor) {
    T* in = grad_input.data_ptr<T>();
    const T* out = grad_output.data_ptr<T>();
    for_each_part(g, [&](const PlanePart& part) {
      PlaneSums<T> sums(in + part.plane * g.input_plane() * g.inner, g.input_plane(), g.inner, part);
      for (int64_t d = 0; d < g.axis[0].output; ++d) {
        for (int64_t h = 0; h < g.axis[1].output; ++h) {
          spread_row(out + output_row(g, part.plane, d, h) + part.begin, sums, g, divisor, d, h);
        }
      }
      sums.store();
    });
  }

 private:
  template <class Math>
  static void add_to_each(Math* to, int64_t n, Math share) {
    for (int64_t i = 0; i < n; ++i) to[i] += share;
  }
  template <class Math>
  static void add_to_tap(Math* row, const Tap& tap, int64_t stride, const Math* shares) {
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t o = tap.first; o < tap.last; ++o) row[o + tap.offset] += shares[o];
    } else {
#pragma GCC ivdep
      for (int64_t o = tap.first; o < tap.last; ++o) row[o * stride + tap.offset] += shares[o];
    }
  }
  // Adds a row's gradients, each divided as its window's sum was, to all elements of the windows.
  template <class T>
  static void spread_row(const T* row, PlaneSums<T>& sums, const PoolGeometry& g, const PoolDivisor& divisor, int64_t d,
                         int64_t h) {
    using Math = opmath_t<T>;
    const PoolAxis& width = g.axis[2];
    const int64_t channels = sums.width();
    static thread_local std::vector<Math> shares;
    shares.resize(static_cast<size_t>(width.output * channels));
    for (int64_t o = 0; o < width.output; ++o) {
      const auto count = static_cast<Math>(divisor(g, d, h, o));
      const T* from = row + o * g.inner;
      for (int64_t c = 0; c < channels; ++c) shares[o * channels + c] = static_cast<Math>(from[c]) / count;
    }
    if (by_column(g)) {
      static thread_local std::vector<Math> columns;
      columns.assign(static_cast<size_t>(width.input), Math(0));
      for (int64_t o = 0; o < width.output; ++o) {
        add_to_each(columns.data() + width.begin(o), width.count(o), shares[static_cast<size_t>(o)]);
      }
      return for_each_window_row(g, d, h,
                                 [&](int64_t start) { add_columns(columns.data(), width.input, sums.at(start)); });
    }
    for_each_window_row(g, d, h, [&](int64_t start) {
      if (by_tap(g)) {
        for_each_tap(width, [&](const Tap& tap) { add_to_tap(sums.at(start), tap, width.stride, shares.data()); });
        return;
      }
      for (int64_t o = 0; o < width.output; ++o) {
        const Math* share = shares.data() + o * channels;
        for (int64_t w = width.begin(o); w < width.end(o); ++w) {
          Math* to = sums.at(start + w);
          for (int64_t c = 0; c < channels; ++c) to[c] += share[c];
        }
      }
    });
  }
};

struct FractionalMaxLoop {
  template <class T>
  static void run(const Tensor& indices, const Tensor& input, const Tensor& samples, const FractionalGeometry& g) {
    const functors::FractionalMax<T> where{input.data_ptr<T>(), samples.data_ptr<T>(), g};
    const FractionalAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
    const int64_t cost = width.output * depth.kernel * height.kernel * width.kernel;
    auto* out = indices.data_ptr<int64_t>();
    parallel_for(0, indices.numel() / width.output, std::max<int64_t>(1, kGrain / cost),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const int64_t h = row % height.output, d = row / height.output % depth.output;
                     const int64_t plane = row / height.output / depth.output;
                     for (int64_t w = 0; w < width.output; ++w) out[row * width.output + w] = where(plane, d, h, w);
                   }
                 });
  }
};

using AvgTypes = TypeList<float, double, Half, BFloat16, int64_t>;

}  // namespace

void register_pool() {
  set_by_dtype<kernels::max_pool, MaxPoolLoop, RealTypes, 2>(kCPU);
  set_by_dtype<kernels::max_pool_backward, MaxPoolBackwardLoop, RealFloatTypes>(kCPU);
  set_by_dtype<kernels::avg_pool, AvgPoolLoop, AvgTypes, 1>(kCPU);
  set_by_dtype<kernels::avg_pool_backward, AvgPoolBackwardLoop, RealFloatTypes>(kCPU);
  set_by_dtype<kernels::fractional_max_pool, FractionalMaxLoop, RealFloatTypes, 1>(kCPU);
}

}  // namespace rush::cpu
