// The gradients of softmax, (g - sum(g o)) o, and of log_softmax, g - e^o sum(g), for the output o.
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "core/ops/nn/softmax.h"

namespace rush::cuda {

namespace {

template <class Math>
__device__ Math gradient(Math g, Math o, Math sum, bool log) {
  return log ? g - std::exp(o) * sum : (g - sum) * o;
}

template <class T, bool kWide>
__global__ void __launch_bounds__(1024)
    backward_rows(T* out, const T* grad, const T* output, int64_t rows, int64_t n, bool log) {
  using Math = opmath_t<T>;
  HeldRow<T, kWide> g, o;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < rows; first += step) {
    const int64_t r = first + threadIdx.y, size = r < rows ? n : 0;
    g.load(grad + r * n, size, Math(0));
    o.load(output + r * n, size, Math(0));
    Math sum(0);
    g.for_each(size, [&](int v, int l) { sum += log ? g.value[v][l] : g.value[v][l] * o.value[v][l]; });
    sum = sum_row(sum);
    g.for_each(size, [&](int v, int l) { g.value[v][l] = gradient(g.value[v][l], o.value[v][l], sum, log); });
    g.store(out + r * n, size);
  }
}

// Lines of any dimension: threads with the same x share the elements of a line.
template <class T>
__global__ void __launch_bounds__(1024)
    backward_lines(T* out, const T* grad, const T* output, AlongDim shape, bool log) {
  using Math = opmath_t<T>;
  __shared__ Math shared[1024];
  const int64_t tiles = (shape.inner + blockDim.x - 1) / blockDim.x;
  for (int64_t task = blockIdx.x; task < shape.outer * tiles; task += gridDim.x) {
    const int64_t column = task % tiles * blockDim.x + threadIdx.x;
    const int64_t start = task / tiles * shape.size * shape.inner + column;
    const int64_t n = column < shape.inner ? shape.size : 0;
    Math sum(0);
    for (int64_t i = threadIdx.y; i < n; i += blockDim.y) {
      const int64_t at = start + i * shape.inner;
      sum += log ? static_cast<Math>(grad[at]) : static_cast<Math>(grad[at]) * static_cast<Math>(output[at]);
    }
    shared[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) {
        shared[threadIdx.y * blockDim.x + threadIdx.x] += shared[(threadIdx.y + half) * blockDim.x + threadIdx.x];
      }
    }
    __syncthreads();
    sum = shared[threadIdx.x];
    for (int64_t i = threadIdx.y; i < n; i += blockDim.y) {
      const int64_t at = start + i * shape.inner;
      out[at] = static_cast<T>(gradient(static_cast<Math>(grad[at]), static_cast<Math>(output[at]), sum, log));
    }
    __syncthreads();
  }
}

struct SoftmaxBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape, bool log) {
    if (output.numel() == 0) return;
    const char* op = log ? "log_softmax_backward" : "softmax_backward";
    const T *g = grad.data_ptr<T>(), *o = output.data_ptr<T>();
    T* out = grad_input.data_ptr<T>();
    if (shape.inner == 1 && rows_are_wide<T>(shape.size, g, o, out) && shape.size <= RowAccess<T, true>::kLongest) {
      using Access = RowAccess<T, true>;
      const auto l = RowLaunch::of_short_rows(shape.outer, shape.size, Access::kHeld, Access::kLanes);
      launch_kernel(op, backward_rows<T, true>, {l.grid, l.block}, out, g, o, shape.outer, shape.size, log);
    } else if (shape.inner == 1 && shape.size <= RowAccess<T, false>::kLongest) {
      const auto l = RowLaunch::of_short_rows(shape.outer, shape.size, RowAccess<T, false>::kHeld, 1);
      launch_kernel(op, backward_rows<T, false>, {l.grid, l.block}, out, g, o, shape.outer, shape.size, log);
    } else {
      const unsigned across = shape.inner >= 32  ? 32
                              : shape.inner == 1 ? 1
                                                 : 8,
                     threads = shape.inner == 1 ? 1024 : 256;
      const int64_t tiles = (shape.inner + across - 1) / across;
      const auto blocks = static_cast<unsigned>(std::min<int64_t>(shape.outer * tiles, 1 << 30));
      launch_kernel(op, backward_lines<T>, {blocks, dim3(across, threads / across)}, out, g, o, shape, log);
    }
  }
};

}  // namespace

void register_softmax_backward() {
  set_by_dtype<kernels::softmax_backward, SoftmaxBackwardLoop, RealFloatTypes, 2>(kCUDA);
}

}  // namespace rush::cuda
