// Layer norm and RMS norm, backward: see layer_norm_backward.h. Rows too long for registers are reduced, and read
// again.
#include "backends/cuda/kernels/nn/layer_norm_backward.h"
#include "backends/functors/optional_data.h"
#include "core/ops/nn/norm.h"

namespace rush::cuda {

using namespace layer_norm;

namespace {

template <class T>
struct RowSums {
  using In = opmath_t<T>;
  using Acc = Sums<In>;
  Backward<T> call;
  __device__ Acc identity() const { return {In(0), In(0)}; }
  __device__ Acc take_at(const Acc& acc, In, int64_t at, int64_t column) const {
    const In g = call.g(at, column);
    return {acc.g + g, acc.g_hat + g * call.hat(at, at / call.n)};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return AddSums<In>().combine(a, b); }
};

template <class T>
struct ColumnSums {
  using In = opmath_t<T>;
  using Acc = Sums<In>;
  Backward<T> call;
  __device__ Acc identity() const { return {In(0), In(0)}; }
  __device__ Acc take_at(const Acc& acc, In dy, int64_t at, int64_t row) const {
    return {acc.g + dy, acc.g_hat + dy * call.hat(at, row)};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return AddSums<In>().combine(a, b); }
};

template <class Math>
struct StoreSums {
  Sums<Math>* out;
  __device__ void operator()(int64_t at, const Sums<Math>& sums) const { out[at] = sums; }
};
template <class Math>
struct StoreParameters {
  Math *dw, *db;
  __device__ void operator()(int64_t at, const Sums<Math>& sums) const {
    if (dw) dw[at] = sums.g_hat;
    if (db) db[at] = sums.g;
  }
};

template <class T>
struct InputGradient {
  using Math = opmath_t<T>;
  Backward<T> call;
  const Sums<Math>* sums;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / call.n;
    const Math count = static_cast<Math>(call.n), mean_g = call.mean ? sums[row].g / count : Math(0);
    call.dx[i] = static_cast<T>(call.rstd[row] *
                                (call.g(i, i % call.n) - mean_g - call.hat(i, row) * (sums[row].g_hat / count)));
  }
};

struct LayerNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                  const Tensor& weight, int64_t columns) {
    using Math = opmath_t<T>;
    const Backward<T> call{grad_output.data_ptr<T>(),
                           input.data_ptr<T>(),
                           data_or_null<T>(grad_input),
                           data_or_null<Math>(mean),
                           rstd.data_ptr<Math>(),
                           data_or_null<Math>(weight),
                           rstd.numel(),
                           columns};
    const GradientSums<Math, T> sums{data_or_null<Math>(grad_weight), data_or_null<Math>(grad_bias)};
    if (columns == 0) return;
    const bool wide =
        rows_are_wide<T>(columns, call.dy, call.x) && (!call.dx || reinterpret_cast<uintptr_t>(call.dx) % 16 == 0);
    const char* op = kernels::layer_norm_backward.name();
    if (call.rows > 0 && wide && columns <= RowAccess<T, true, kHold>::kLongest) {
      held<true, false>(op, call, sums);
    } else if (call.rows > 0 && columns <= RowAccess<T, false, kHold>::kLongest) {
      held<false, false>(op, call, sums);
    } else {
      reduced(call, sums.dw, sums.db);
    }
  }

  template <class T>
  static void reduced(const Backward<T>& call, opmath_t<T>* dw, opmath_t<T>* db) {
    using Math = opmath_t<T>;
    const char* op = kernels::layer_norm_backward.name();
    if (call.dx && call.rows > 0) {
      const Scratch sums(static_cast<size_t>(call.rows) * sizeof(Sums<Math>));
      const ReduceDims rows = {{call.rows, call.n, 1, false}, {call.n, 1, 0, true}};
      reduce_dims(op, call.dy, RowSums<T>{call}, StoreSums<Math>{sums.as<Sums<Math>>()}, rows);
      for_each_index(op, call.rows * call.n, InputGradient<T>{call, sums.as<Sums<Math>>()});
    }
    if (!dw && !db) return;
    const ReduceDims columns = {{call.rows, call.n, 0, true}, {call.n, 1, 1, false}};
    reduce_dims(op, call.dy, ColumnSums<T>{call}, StoreParameters<Math>{dw, db}, columns);
  }
};

}  // namespace

void register_layer_norm_backward() {
  set_by_dtype<kernels::layer_norm_backward, LayerNormBackwardLoop, RealFloatTypes, 4>(kCUDA);
}

}  // namespace rush::cuda
