// The backward pass of gelu(x + bias): grad *= gelu'(pre), and the column sums of the result, which are the bias's
// gradient. One pass does both, so that memory is read once.
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/cuda/register.h"
#include "backends/functors/activation.h"
#include "backends/functors/reduce.h"
#include "core/ops/nn/fused.h"

namespace rush::cuda {

namespace {

inline constexpr int kWarps = kThreads / 32;
inline constexpr int kRowsAtOnce = 2;  // of a thread, in flight

// A thread block processes 32 vectors of columns (blockIdx.x) in a chunk of `chunk` rows (blockIdx.y); each warp
// processes whole rows. The block writes its sums to row blockIdx.y of `partial_sums` (chunks, columns).
template <class T>
__global__ void __launch_bounds__(kThreads) gelu_bias_backward_kernel(T* grad, const T* pre, opmath_t<T>* partial_sums,
                                                                      int64_t rows, int64_t columns, int64_t chunk) {
  using Math = opmath_t<T>;
  constexpr int kLanes = RowAccess<T, true>::kLanes;
  using Vector = Lanes<T, kLanes>;
  const functors::GeluTanhBackward gelu_backward;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + lane) * kLanes;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * chunk, end = min(begin + chunk, rows);
  Math sums[kLanes] = {};
  if (column < columns) {
    for (int64_t first = begin + warp; first < end; first += kRowsAtOnce * kWarps) {
      Vector g[kRowsAtOnce], x[kRowsAtOnce];
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int64_t row = first + r * kWarps;
        if (row >= end) continue;
        g[r] = *reinterpret_cast<const Vector*>(grad + row * columns + column);
        x[r] = *reinterpret_cast<const Vector*>(pre + row * columns + column);
      }
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int64_t row = first + r * kWarps;
        if (row >= end) continue;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          g[r].lane[l] =
              static_cast<T>(gelu_backward(static_cast<Math>(g[r].lane[l]), static_cast<Math>(x[r].lane[l])));
          sums[l] += static_cast<Math>(g[r].lane[l]);  // as it was rounded
        }
        *reinterpret_cast<Vector*>(grad + row * columns + column) = g[r];
      }
    }
  }
  __shared__ Math shared[kWarps][kLanes][32];
#pragma unroll
  for (int l = 0; l < kLanes; ++l) shared[warp][l][lane] = sums[l];
  __syncthreads();
  if (warp != 0 || column >= columns) return;
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    Math sum = shared[0][l][lane];
    for (int w = 1; w < kWarps; ++w) sum += shared[w][l][lane];
    partial_sums[static_cast<int64_t>(blockIdx.y) * columns + column + l] = sum;
  }
}

struct GeluBiasBackwardLoop {
  template <class T>
  static void run(const Tensor& grad, const Tensor& pre, const Tensor& sums) {
    using Math = opmath_t<T>;
    const char* op = kernels::gelu_bias_backward.name();
    const int64_t rows = grad.size(0), columns = grad.size(1);
    T* g = grad.data_ptr<T>();
    const T* x = pre.data_ptr<T>();
    const bool dense = grad.is_contiguous() && pre.is_contiguous();
    if (rows == 0 || columns == 0 || !dense || !rows_are_wide<T>(columns, g, x)) {
      return native::gelu_bias_backward_by_parts(grad, pre, sums);
    }
    constexpr int64_t kWidth = int64_t{32} * RowAccess<T, true>::kLanes;
    const int64_t tiles = (columns + kWidth - 1) / kWidth;
    // As many chunks as fill the device, but none of so few rows that its sums cost as much traffic as its rows.
    const int64_t blocks = static_cast<int64_t>(current_properties().multiProcessorCount) * 8;
    const int64_t least = int64_t{kWarps} * kRowsAtOnce * 4;
    const int64_t wanted = std::max<int64_t>(1, blocks / tiles);
    const int64_t chunk = std::max(least, (rows + wanted - 1) / wanted), chunks = (rows + chunk - 1) / chunk;
    const Scratch partial_sums(static_cast<size_t>(chunks * columns) * sizeof(Math));
    const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(chunks));
    launch_kernel(op, gelu_bias_backward_kernel<T>, {grid, kThreads}, g, x, partial_sums.as<Math>(), rows, columns,
                  chunk);
    using Add = functors::Sum<Math>;
    const ReduceDims dims = {{chunks, columns, 0, true}, {columns, 1, 1, false}};
    reduce_dims(op, partial_sums.as<const Math>(), Add(), StoreResult<T, Add>{sums.data_ptr<T>(), Add()}, dims);
  }
};

}  // namespace

void register_gelu_bias_backward() {
  set_by_dtype<kernels::gelu_bias_backward, GeluBiasBackwardLoop, RealFloatTypes>(kCUDA);
}

}  // namespace rush::cuda
