// The forward pass of layer norm and RMS norm. A row stays in registers, see Note [Rows in registers]; for longer rows,
// a reduction computes the moments, and the rest is element-wise.
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/reduce.h"
#include "core/ops/nn/norm.h"

namespace rush::cuda {

namespace {

// y = (x - mean) rstd w + b; null stands for weight 1, bias 0 and, in RMS norm, for mean 0.
template <class T>
struct Forward {
  using Math = opmath_t<T>;
  const T* x;
  T* y;
  Math *mean, *rstd;
  const Math *weight, *bias;
  int64_t rows, n;
  double eps;

  __device__ Math normalised(Math value, Math centre, Math r, int64_t column) const {
    value = (value - centre) * r;
    if (weight) value *= weight[column];
    if (bias) value += bias[column];
    return value;
  }
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / n;
    y[i] = static_cast<T>(normalised(static_cast<Math>(x[i]), mean ? mean[row] : Math(0), rstd[row], i % n));
  }
};

template <class T, bool kWide>
__global__ void __launch_bounds__(1024) forward_rows(Forward<T> call) {
  using Math = opmath_t<T>;
  using Row = PackedRow<T, kWide>;
  constexpr int kLanes = Row::kLanes;
  Row row;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < call.rows; first += step) {
    const int64_t r = first + threadIdx.y;
    const int n = r < call.rows ? static_cast<int>(call.n) : 0;
    row.load(call.x + r * call.n, n);
    const Math count = static_cast<Math>(call.n);
    Math centre(0), squares(0);
    if (call.mean && call.n > 0) {  // the mean of nothing is zero
      row.for_each(n, [&](Math value) { centre += value; });
      centre = sum_row(centre) / count;
    }
    row.for_each(n, [&](Math value) { squares += (value - centre) * (value - centre); });
    const Math rstd = 1 / std::sqrt(sum_row(squares) / count + static_cast<Math>(call.eps));
    row.store(call.y + r * call.n, n, [&](Math(&values)[kLanes], int column) {
      Math weight[kLanes], bias[kLanes];
      if (call.weight) read_columns(weight, call.weight + column);
      if (call.bias) read_columns(bias, call.bias + column);
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        values[l] = (values[l] - centre) * rstd;
        if (call.weight) values[l] *= weight[l];
        if (call.bias) values[l] += bias[l];
      }
    });
    if (threadIdx.x == 0 && r < call.rows) {
      if (call.mean) call.mean[r] = centre;
      call.rstd[r] = rstd;
    }
  }
}

template <class Math>
struct StoreRowMoments {
  Math *mean, *rstd;
  double eps;
  __device__ void operator()(int64_t at, const typename functors::Moments<Math, Math>::Acc& acc) const {
    double variance = static_cast<double>(acc.squares) / acc.count;
    if (mean) {
      mean[at] = acc.mean;
    } else {
      variance += static_cast<double>(acc.mean) * acc.mean;  // about zero
    }
    rstd[at] = static_cast<Math>(1 / std::sqrt(variance + eps));
  }
};

struct LayerNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                  const Tensor& weight, const Tensor& bias, int64_t columns, double eps) {
    using Math = opmath_t<T>;
    const char* op = kernels::layer_norm.name();
    const Forward<T> call{input.data_ptr<T>(),
                          output.data_ptr<T>(),
                          data_or_null<Math>(mean),
                          rstd.data_ptr<Math>(),
                          data_or_null<Math>(weight),
                          data_or_null<Math>(bias),
                          rstd.numel(),
                          columns,
                          eps};
    if (call.rows == 0) return;
    if (rows_are_wide<T>(columns, call.x, call.y, call.weight, call.bias) &&
        columns <= PackedRow<T, true>::Access::kLongest) {
      const RowLaunch l(call.rows, columns, PackedRow<T, true>::Access::kHeld);
      launch_kernel(op, forward_rows<T, true>, {l.grid, l.block}, call);
    } else if (columns <= PackedRow<T, false>::Access::kLongest) {
      const RowLaunch l(call.rows, columns, PackedRow<T, false>::Access::kHeld);
      launch_kernel(op, forward_rows<T, false>, {l.grid, l.block}, call);
    } else {
      const ReduceDims dims = {{call.rows, columns, 1, false}, {columns, 1, 0, true}};
      reduce_dims(op, call.x, functors::Moments<Math, Math>(), StoreRowMoments<Math>{call.mean, call.rstd, eps}, dims);
      for_each_index(op, call.rows * columns, call);
    }
  }
};

}  // namespace

void register_layer_norm() { set_by_dtype<kernels::layer_norm, LayerNormLoop, RealFloatTypes, 3>(kCUDA); }

}  // namespace rush::cuda
