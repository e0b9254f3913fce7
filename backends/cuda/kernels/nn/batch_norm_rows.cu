// Note [Batch norm of rows]
// Channels-last activations are a matrix of rows (positions) and columns (channels). A thread keeps the parameters of
// its columns, as many as fill 16 bytes, in registers, and loops over rows. The threads of a warp have neighbouring
// columns of a row, or neighbouring rows if a row is short, so that every access reads whole sectors. ReLU, the sum
// with a residual and their derivatives are fused into the pass that has the element.
//
// Sums over columns take two launches: each thread block writes one partial sum for a column, and a second kernel adds
// these in double precision and always in the same order, so results repeat.
#include "backends/cuda/kernels/nn/batch_norm_rows.h"

#include "backends/cuda/device_properties.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/optional_data.h"

namespace rush::cuda {

namespace {

using kernels::ChannelLayout;
using RowTypes = TypeList<float, Half, BFloat16>;  // all computed in float

constexpr uintptr_t kAccess = 16;  // bytes
template <class T>
constexpr int kColumns = kAccess / sizeof(T);  // of a thread
constexpr int kRowsInFlight = 4;               // whose loads a thread issues before it computes
constexpr int kMostVectors = 32;               // of a block, along a row

// The work of a thread block (x, y): the columns that begin at vector x * blockDim.x, of every (gridDim.y *
// blockDim.y)-th row.
struct RowGrid {
  dim3 blocks, threads;
};

// More blocks than run at once balance the load at the end; each block of a sum writes a partial sum.
constexpr int kBlocksForSums = 8, kBlocksForElements = 16;  // for each multiprocessor

// `lanes`: columns of a thread, a divisor of the channels.
RowGrid grid_of(const ChannelLayout& l, int lanes, int blocks_for_processor) {
  const int64_t vectors = l.channels / lanes;
  unsigned width = 1;
  while (width < kMostVectors && width < vectors) width *= 2;
  const unsigned height = kThreads / width;
  const int64_t across = (vectors + width - 1) / width;
  const int64_t blocks = int64_t{blocks_for_processor} * current_properties().multiProcessorCount;
  const int64_t rows_of_block = int64_t{height} * kRowsInFlight;
  const int64_t down =
      std::clamp<int64_t>((l.outer + rows_of_block - 1) / rows_of_block, 1, (blocks + across - 1) / across);
  return {dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), dim3(width, height)};
}

// The calling thread's columns and rows. The second pass over a tensor goes backwards, because the L2 cache still holds
// the rows that the first pass read last.
template <class T>
struct Walk {
  int64_t rows;
  int channels;
  bool backwards;

  __device__ int column() const { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kColumns<T>; }

  // Calls body(offsets of the thread's columns in at most kRowsInFlight rows, how many rows).
  template <class Body>
  __device__ void for_each(const Body& body) const {
    const int64_t step = int64_t{gridDim.y} * blockDim.y;
    for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows; row += kRowsInFlight * step) {
      int64_t offsets[kRowsInFlight];
      int count = 0;
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        const int64_t at = row + r * step;
        offsets[r] = (backwards ? rows - 1 - at : at) * channels + column();
        count += at < rows;
      }
      body(offsets, count);
    }
  }
};

template <class T>
using Vector = Lanes<T, kColumns<T>>;

template <class T>
__device__ void load(Vector<T> (&vectors)[kRowsInFlight], const T* data, const int64_t (&offsets)[kRowsInFlight],
                     int count) {
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    if (r < count) vectors[r] = *reinterpret_cast<const Vector<T>*>(data + offsets[r]);
  }
}

template <class T>
struct Numbers {
  float of[kColumns<T>];

  // Null stands for `rest`.
  __device__ void load(const float* all, int column, float rest) {
#pragma unroll
    for (int l = 0; l < kColumns<T>; ++l) of[l] = all ? all[column + l] : rest;
  }
};

// Both passes normalise an element here: the backward pass must see the same sign as the forward pass.
__device__ inline float normalised(float x, float mean, float scale, float shift) {
  return fmaf(x - mean, scale, shift);
}

// Whether ReLU passes on the gradient of an output: not if the output is 0, but if it is NaN.
template <class T>
__device__ bool passes(float value) {
  return !(static_cast<float>(static_cast<T>(value)) <= 0);
}

// The statistics and parameters of all channels; weight and bias may be null.
struct ChannelNumbers {
  const float *mean, *invstd, *weight, *bias;
};

template <class T>
struct ColumnNumbers {
  Numbers<T> mean, scale, shift;

  __device__ ColumnNumbers(const ChannelNumbers& c, int column) {
    Numbers<T> weight;
    mean.load(c.mean, column, 0);
    scale.load(c.invstd, column, 0);
    weight.load(c.weight, column, 1);
    shift.load(c.bias, column, 0);
#pragma unroll
    for (int l = 0; l < kColumns<T>; ++l) scale.of[l] *= weight.of[l];
  }
  __device__ float normalise(float x, int l) const { return normalised(x, mean.of[l], scale.of[l], shift.of[l]); }
};

// ---- output ----

template <class T, bool kRelu, bool kResidual>
__global__ void __launch_bounds__(kThreads)
    affine_rows_kernel(T* out, const T* in, const T* residual, ChannelNumbers channels, Walk<T> walk) {
  const int column = walk.column();
  if (column >= walk.channels) return;
  const ColumnNumbers<T> numbers(channels, column);
  walk.for_each([&](const int64_t(&offsets)[kRowsInFlight], int count) {
    Vector<T> x[kRowsInFlight], other[kRowsInFlight];
    load(x, in, offsets, count);
    if constexpr (kResidual) load(other, residual, offsets, count);
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (r >= count) break;
      Vector<T> result;
#pragma unroll
      for (int l = 0; l < kColumns<T>; ++l) {
        float value = numbers.normalise(static_cast<float>(x[r].lane[l]), l);
        if constexpr (kResidual) value += static_cast<float>(other[r].lane[l]);
        if constexpr (kRelu) value = value < 0 ? 0 : value;  // NaN stays
        result.lane[l] = static_cast<T>(value);
      }
      *reinterpret_cast<Vector<T>*>(out + offsets[r]) = result;
    }
  });
}

// ---- sums over columns ----

// Two sums for each of a thread's columns.
template <class T>
struct ColumnSums {
  float first[kColumns<T>] = {}, second[kColumns<T>] = {};

  // Adds up the block's, and writes them to row blockIdx.y of `partial`: (gridDim.y, 2, channels).
  __device__ void store(float* partial, int channels) const {
    __shared__ float shared[2][kThreads * kColumns<T>];
    const int columns = static_cast<int>(blockDim.x) * kColumns<T>;
    const int own = static_cast<int>(threadIdx.y) * columns + static_cast<int>(threadIdx.x) * kColumns<T>;
#pragma unroll
    for (int l = 0; l < kColumns<T>; ++l) {
      shared[0][own + l] = first[l];
      shared[1][own + l] = second[l];
    }
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    const int begin = static_cast<int>(blockIdx.x) * columns;
    for (int i = thread; i < 2 * columns; i += kThreads) {
      const int which = i / columns, c = i % columns;
      if (begin + c >= channels) continue;
      float sum = 0;
      for (int y = 0; y < static_cast<int>(blockDim.y); ++y) sum += shared[which][y * columns + c];
      partial[(int64_t{blockIdx.y} * 2 + which) * channels + begin + c] = sum;
    }
  }
};

// Adds up the partial sums of each channel and calls store(channel, first, second).
constexpr int kSummedChannels = 8;  // of a block: 32 bytes are a sector
template <class Store>
__global__ void __launch_bounds__(kThreads)
    sum_partials_kernel(const float* partial, int parts, int channels, const __grid_constant__ Store store) {
  constexpr int kParts = kThreads / kSummedChannels;
  __shared__ double shared[2][kParts][kSummedChannels];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int channel = static_cast<int>(blockIdx.x) * kSummedChannels + x;
  double sums[2] = {0, 0};
  if (channel < channels) {
#pragma unroll 4
    for (int part = y; part < parts; part += kParts) {
      const float* row = partial + int64_t{part} * 2 * channels + channel;
      sums[0] += static_cast<double>(row[0]);
      sums[1] += static_cast<double>(row[channels]);
    }
  }
  shared[0][y][x] = sums[0];
  shared[1][y][x] = sums[1];
  __syncthreads();
  for (int half = kParts / 2; half > 0; half /= 2) {
    if (y < half) {
      shared[0][y][x] += shared[0][y + half][x];
      shared[1][y][x] += shared[1][y + half][x];
    }
    __syncthreads();
  }
  if (y == 0 && channel < channels) store(channel, shared[0][0][x], shared[1][0][x]);
}

template <class Store>
void sum_partials(const char* op, const Scratch& partial, const RowGrid& grid, const ChannelLayout& l,
                  const Store& store) {
  const auto blocks = static_cast<unsigned>((l.channels + kSummedChannels - 1) / kSummedChannels);
  launch_kernel(op, sum_partials_kernel<Store>, {blocks, dim3(kSummedChannels, kThreads / kSummedChannels)},
                partial.as<float>(), static_cast<int>(grid.blocks.y), static_cast<int>(l.channels), store);
}

Scratch partial_sums(const RowGrid& grid, const ChannelLayout& l) {
  return Scratch(static_cast<size_t>(grid.blocks.y) * 2 * static_cast<size_t>(l.channels) * sizeof(float));
}

// ---- statistics ----

// Sums of x - k and of its square, with k the channel's first element: so near to the mean that their difference, the
// variance, loses no digits.
template <class T>
__global__ void __launch_bounds__(kThreads) row_moments_kernel(float* partial, const T* in, Walk<T> walk) {
  const int column = walk.column();
  ColumnSums<T> sums;
  if (column < walk.channels) {
    const Vector<T> shift = *reinterpret_cast<const Vector<T>*>(in + column);
    walk.for_each([&](const int64_t(&offsets)[kRowsInFlight], int count) {
      Vector<T> x[kRowsInFlight];
      load(x, in, offsets, count);
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        if (r >= count) break;
#pragma unroll
        for (int l = 0; l < kColumns<T>; ++l) {
          const float d = static_cast<float>(x[r].lane[l]) - static_cast<float>(shift.lane[l]);
          sums.first[l] += d;
          sums.second[l] = fmaf(d, d, sums.second[l]);
        }
      }
    });
  }
  sums.store(partial, walk.channels);
}

template <class T>
struct StoreRowStatistics {
  float *mean, *var, *invstd;
  const T* in;
  double count, eps;
  bool rounded;  // to T

  __device__ float stored(double value) const {
    const auto narrow = static_cast<float>(value);
    return rounded ? static_cast<float>(static_cast<T>(narrow)) : narrow;
  }
  __device__ void operator()(int c, double sum, double squares) const {
    const double difference = sum / count, exact = static_cast<double>(static_cast<float>(in[c])) + difference;
    mean[c] = stored(exact);
    const double shift = exact - static_cast<double>(mean[c]);
    double variance = squares / count - difference * difference;
    if (variance < 0) variance = 0;  // by rounding; NaN stays
    variance += shift * shift;       // about the mean as it is stored
    var[c] = static_cast<float>(variance);
    invstd[c] = stored(1 / sqrt(static_cast<double>(stored(variance)) + eps));
  }
};

// ---- gradients ----

template <class T, ReluGate::Kind kGate>
__global__ void __launch_bounds__(kThreads)
    row_gradient_sums_kernel(float* partial, T* gated, const T* grad, const T* in, const T* out,
                             ChannelNumbers channels, Walk<T> walk) {
  const int column = walk.column();
  ColumnSums<T> sums;
  if (column < walk.channels) {
    const ColumnNumbers<T> numbers(channels, column);
    walk.for_each([&](const int64_t(&offsets)[kRowsInFlight], int count) {
      Vector<T> dy[kRowsInFlight], x[kRowsInFlight], y[kRowsInFlight];
      load(dy, grad, offsets, count);
      load(x, in, offsets, count);
      if constexpr (kGate == ReluGate::ByOutput) load(y, out, offsets, count);
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        if (r >= count) break;
#pragma unroll
        for (int l = 0; l < kColumns<T>; ++l) {
          const auto value = static_cast<float>(x[r].lane[l]);
          auto g = static_cast<float>(dy[r].lane[l]);
          if constexpr (kGate == ReluGate::Recomputed) {
            if (!passes<T>(numbers.normalise(value, l))) g = 0;
          }
          if constexpr (kGate == ReluGate::ByOutput) {
            if (!passes<T>(static_cast<float>(y[r].lane[l]))) g = 0;
            dy[r].lane[l] = static_cast<T>(g);
          }
          sums.first[l] += g;
          sums.second[l] = fmaf(g, value - numbers.mean.of[l], sums.second[l]);
        }
        if constexpr (kGate == ReluGate::ByOutput) *reinterpret_cast<Vector<T>*>(gated + offsets[r]) = dy[r];
      }
    });
  }
  sums.store(partial, walk.channels);
}

// From sum(dy) and sum(dy (x - mean)): see the formula in batch_norm.cu.
struct StoreRowGradients {
  float *mean_dy, *proj_scale;  // dx = (dy - mean_dy - (x - mean) proj_scale) scale
  float *dw, *db;               // may be null
  const float* invstd;
  double count;
  bool training;

  __device__ void operator()(int c, double sum, double dot) const {
    const double r = static_cast<double>(invstd[c]);
    if (dw) dw[c] = static_cast<float>(dot * r);
    if (db) db[c] = static_cast<float>(sum);
    mean_dy[c] = training ? static_cast<float>(sum / count) : 0;
    proj_scale[c] = training ? static_cast<float>(dot * r * r / count) : 0;
  }
};

template <class T, bool kGated>
__global__ void __launch_bounds__(kThreads)
    row_input_gradient_kernel(T* dx, const T* grad, const T* in, ChannelNumbers channels, const float* mean_dy,
                              const float* proj_scale, Walk<T> walk) {
  const int column = walk.column();
  if (column >= walk.channels) return;
  const ColumnNumbers<T> numbers(channels, column);
  Numbers<T> means, proj_scales;
  means.load(mean_dy, column, 0);
  proj_scales.load(proj_scale, column, 0);
  walk.for_each([&](const int64_t(&offsets)[kRowsInFlight], int count) {
    Vector<T> dy[kRowsInFlight], x[kRowsInFlight];
    load(dy, grad, offsets, count);
    load(x, in, offsets, count);
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (r >= count) break;
      Vector<T> result;
#pragma unroll
      for (int l = 0; l < kColumns<T>; ++l) {
        const auto value = static_cast<float>(x[r].lane[l]);
        auto g = static_cast<float>(dy[r].lane[l]);
        if constexpr (kGated) {
          if (!passes<T>(numbers.normalise(value, l))) g = 0;
        }
        const float proj = (value - numbers.mean.of[l]) * proj_scales.of[l];
        result.lane[l] = static_cast<T>((g - means.of[l] - proj) * numbers.scale.of[l]);
      }
      *reinterpret_cast<Vector<T>*>(dx + offsets[r]) = result;
    }
  });
}

// ---- launches ----

template <class T>
Walk<T> walk_of(const ChannelLayout& l, bool backwards) {
  return {l.outer, static_cast<int>(l.channels), backwards};
}

ChannelNumbers numbers_of(const Tensor& mean, const Tensor& invstd, const Tensor& weight, const Tensor& bias) {
  return {mean.data_ptr<float>(), invstd.data_ptr<float>(), data_or_null<float>(weight), data_or_null<float>(bias)};
}

struct AffineRows {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& residual, const ChannelNumbers& channels,
                  bool relu, const ChannelLayout& l) {
    const RowGrid grid = grid_of(l, kColumns<T>, kBlocksForElements);
    const auto kernel = residual.defined() ? affine_rows_kernel<T, true, true>
                        : relu             ? affine_rows_kernel<T, true, false>
                                           : affine_rows_kernel<T, false, false>;
    launch_kernel("batch_norm", kernel, {grid.blocks, grid.threads}, output.data_ptr<T>(), input.data_ptr<T>(),
                  data_or_null<T>(residual), channels, walk_of<T>(l, true));
  }
};

struct RowStatistics {
  template <class T>
  static void run(const Tensor& mean, const Tensor& var, const Tensor& invstd, const Tensor& input, double eps,
                  bool rounded, const ChannelLayout& l) {
    const RowGrid grid = grid_of(l, kColumns<T>, kBlocksForSums);
    const Scratch partial = partial_sums(grid, l);
    const T* in = input.data_ptr<T>();
    launch_kernel("batch_norm", row_moments_kernel<T>, {grid.blocks, grid.threads}, partial.as<float>(), in,
                  walk_of<T>(l, false));
    sum_partials("batch_norm", partial, grid, l,
                 StoreRowStatistics<T>{mean.data_ptr<float>(), var.data_ptr<float>(), invstd.data_ptr<float>(), in,
                                       static_cast<double>(l.outer), eps, rounded});
  }
};

struct BackwardRows {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, bool training, const ReluGate& gate, const ChannelLayout& l) {
    const char* op = kernels::batch_norm_backward.name();
    const RowGrid grid = grid_of(l, kColumns<T>, kBlocksForSums);
    const ChannelNumbers channels = numbers_of(mean, invstd, weight, gate.bias);
    const Scratch partial = partial_sums(grid, l);
    const T *dy = grad_output.data_ptr<T>(), *x = input.data_ptr<T>();
    const auto sums = gate.kind == ReluGate::None       ? row_gradient_sums_kernel<T, ReluGate::None>
                      : gate.kind == ReluGate::ByOutput ? row_gradient_sums_kernel<T, ReluGate::ByOutput>
                                                        : row_gradient_sums_kernel<T, ReluGate::Recomputed>;
    launch_kernel(op, sums, {grid.blocks, grid.threads}, partial.as<float>(), data_or_null<T>(gate.gated), dy, x,
                  data_or_null<T>(gate.output), channels, walk_of<T>(l, false));
    const Scratch means(static_cast<size_t>(l.channels) * sizeof(float)), proj_scales(means.size());
    sum_partials(
        op, partial, grid, l,
        StoreRowGradients{means.as<float>(), proj_scales.as<float>(), data_or_null<float>(grad_weight),
                          data_or_null<float>(grad_bias), channels.invstd, static_cast<double>(l.outer), training});
    if (!grad_input.defined()) return;
    const auto gradient =
        gate.kind == ReluGate::Recomputed ? row_input_gradient_kernel<T, true> : row_input_gradient_kernel<T, false>;
    const RowGrid elements = grid_of(l, kColumns<T>, kBlocksForElements);
    launch_kernel(op, gradient, {elements.blocks, elements.threads}, grad_input.data_ptr<T>(),
                  gate.kind == ReluGate::ByOutput ? gate.gated.data_ptr<T>() : dy, x, channels, means.as<float>(),
                  proj_scales.as<float>(), walk_of<T>(l, true));
  }
};

template <class... T>
bool has_row_type(ScalarType dtype, TypeList<T...>) {
  return ((dtype == scalar_type_of<T>) || ...);
}

}  // namespace

bool are_channel_rows(const ChannelLayout& l, std::initializer_list<Tensor> tensors) {
  if (l.inner != 1 || l.outer == 0 || l.channels == 0 || l.channels > std::numeric_limits<int>::max()) return false;
  return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
    return !t.defined() || (has_row_type(t.scalar_type(), RowTypes()) &&
                            l.channels * t.element_size() % static_cast<int64_t>(kAccess) == 0 &&
                            reinterpret_cast<uintptr_t>(t.data_ptr()) % kAccess == 0);
  });
}

void affine_rows(const Tensor& output, const Tensor& input, const Tensor& residual, const Tensor& mean,
                 const Tensor& invstd, const Tensor& weight, const Tensor& bias, bool relu,
                 const ChannelLayout& layout) {
  pick<AffineRows>(RowTypes(), input.scalar_type(), "batch_norm")(output, input, residual,
                                                                  numbers_of(mean, invstd, weight, bias), relu, layout);
}

void row_statistics(const Tensor& mean, const Tensor& var, const Tensor& invstd, const Tensor& input, double eps,
                    bool rounded, const ChannelLayout& layout) {
  pick<RowStatistics>(RowTypes(), input.scalar_type(), "batch_norm")(mean, var, invstd, input, eps, rounded, layout);
}

void batch_norm_backward_rows(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                              const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                              const Tensor& weight, bool training, const ReluGate& gate, const ChannelLayout& layout) {
  pick<BackwardRows>(RowTypes(), input.scalar_type(), "batch_norm_backward")(
      grad_input, grad_weight, grad_bias, grad_output, input, mean, invstd, weight, training, gate, layout);
}

}  // namespace rush::cuda
