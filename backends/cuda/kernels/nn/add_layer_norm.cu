// A sum and its layer norm in one pass, see Note [Rows in registers]: of three dtypes at most, the sum's and first
// addend's, and that of the second addend and the result. The gradient is with layer norm's.
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/random.h"
#include "core/ops/nn/fused.h"

namespace rush::cuda {

namespace {

// y = (s - mean) rstd w + b, s = self + other; null stands for weight 1 and bias 0. L: what `other` and y are in.
// Unless `mask` is null, `other` goes through dropout first.
template <class T, class L>
struct AddForward {
  using Math = opmath_t<T>;
  const T* self;
  const L* other;
  T* sum;
  L* y;
  Math *mean, *rstd;
  const Math *weight, *bias;
  int64_t rows, n;
  Math eps;
  bool* mask;
  functors::Bernoulli keep;
  Math scale;
  PhiloxState reserved;

  // Of neighbours from element `first` on; a word of the stream is that of the element of its number, as in
  // native_dropout.
  template <int kLanes>
  __device__ void drop(Lanes<L, kLanes>& lanes, int64_t first) const {
    Lanes<bool, kLanes> keeps;
    PhiloxBlock block;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      if (l % 4 == 0) block = philox_block(reserved, static_cast<uint64_t>(first + l) / 4);
      keeps.lane[l] = keep(block[kLanes < 4 ? static_cast<int>((first + l) % 4) : l % 4]);
      lanes.lane[l] = keeps.lane[l] ? static_cast<L>(static_cast<Math>(lanes.lane[l]) * scale) : L(0);
    }
    *reinterpret_cast<Lanes<bool, kLanes>*>(mask + first) = keeps;
  }
};

template <class T, class L>
__global__ void __launch_bounds__(1024) add_forward_rows(AddForward<T, L> call) {
  using Math = opmath_t<T>;
  using Row = HeldRow<T, true>;
  constexpr int kLanes = Row::Access::kLanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < call.rows; first += step) {
    const int64_t r = first + threadIdx.y, n = r < call.rows ? call.n : 0;
    Row row;
    row.load(call.self + r * call.n, n, Math(0));
#pragma unroll
    for (int v = 0; v < Row::Access::kVectors; ++v) {
      const int64_t column = Row::column(v);
      if (column >= n) continue;
      auto other = *reinterpret_cast<const Lanes<L, kLanes>*>(call.other + r * call.n + column);
      if (call.mask) call.template drop<kLanes>(other, r * call.n + column);
        // Rounded as it is stored, so that what is normalised is what the backward pass reads.
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        row.value[v][l] = static_cast<Math>(static_cast<T>(row.value[v][l] + static_cast<Math>(other.lane[l])));
      }
    }
    row.store(call.sum + r * call.n, n);
    const Math count = static_cast<Math>(call.n);
    Math centre(0), squares(0);
    row.for_each(n, [&](int v, int l) { centre += row.value[v][l]; });
    centre = sum_row(centre) / count;
    row.for_each(n, [&](int v, int l) {
      row.value[v][l] -= centre;
      squares += row.value[v][l] * row.value[v][l];
    });
    const Math rstd = 1 / std::sqrt(sum_row(squares) / count + call.eps);
#pragma unroll
    for (int v = 0; v < Row::Access::kVectors; ++v) {
      const int64_t column = Row::column(v);
      if (column >= n) continue;
      Lanes<L, kLanes> result;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        Math value = row.value[v][l] * rstd;
        if (call.weight) value *= call.weight[column + l];
        if (call.bias) value += call.bias[column + l];
        result.lane[l] = static_cast<L>(value);
      }
      *reinterpret_cast<Lanes<L, kLanes>*>(call.y + r * call.n + column) = result;
    }
    if (threadIdx.x == 0 && r < call.rows) {
      call.mean[r] = centre;
      call.rstd[r] = rstd;
    }
  }
}

// The same, a warp a row: see Note [Rows in registers].
template <class T, class L, int kHold>
__global__ void __launch_bounds__(kThreads) add_forward_warps(AddForward<T, L> call) {
  using Math = opmath_t<T>;
  using Access = RowAccess<T, true, kHold>;
  constexpr int kLanes = Access::kLanes, kVectors = Access::kVectors;
  const int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (r >= call.rows) return;
  const int n = static_cast<int>(call.n);
  const auto each = [=](const auto& body) { for_each_vector<kVectors, kLanes>(n, body); };
  const T* self = call.self + r * n;
  const L* other = call.other + r * n;
  Lanes<T, kLanes> row[kVectors];
  Lanes<L, kLanes> added[kVectors];
  each([&](int v, int column) {
    row[v] = *reinterpret_cast<const Lanes<T, kLanes>*>(self + column);
    added[v] = *reinterpret_cast<const Lanes<L, kLanes>*>(other + column);
  });
  Math centre(0), squares(0);
  each([&](int v, int column) {
    if (call.mask) call.template drop<kLanes>(added[v], r * n + column);
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      row[v].lane[l] = static_cast<T>(static_cast<Math>(row[v].lane[l]) + static_cast<Math>(added[v].lane[l]));
      centre += static_cast<Math>(row[v].lane[l]);
    }
    *reinterpret_cast<Lanes<T, kLanes>*>(call.sum + r * n + column) = row[v];
  });
  const Math count = static_cast<Math>(n);
  centre = sum_row(centre) / count;
  each([&](int v, int) {
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      const Math deviation = static_cast<Math>(row[v].lane[l]) - centre;
      squares += deviation * deviation;
    }
  });
  const Math rstd = 1 / std::sqrt(sum_row(squares) / count + call.eps);
  each([&](int v, int column) {
    Math weight[kLanes], bias[kLanes];
    if (call.weight) read_columns(weight, call.weight + column);
    if (call.bias) read_columns(bias, call.bias + column);
    Lanes<L, kLanes> result;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      Math value = (static_cast<Math>(row[v].lane[l]) - centre) * rstd;
      if (call.weight) value *= weight[l];
      if (call.bias) value += bias[l];
      result.lane[l] = static_cast<L>(value);
    }
    *reinterpret_cast<Lanes<L, kLanes>*>(call.y + r * n + column) = result;
  });
  if (threadIdx.x != 0) return;
  call.mean[r] = centre;
  call.rstd[r] = rstd;
}

struct AddLayerNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& mask,
                  const Tensor& self, const Tensor& other, const Tensor& weight, const Tensor& bias, int64_t columns,
                  double eps, double keep, const PhiloxState& reserved) {
    bool done = false;
    const auto in = [&](auto like) {
      using L = decltype(like);
      if (done || output.scalar_type() != scalar_type_of<L>) return;
      done = launch<T, L>(output, sum, mean, rstd, mask, self, other, weight, bias, columns, eps, keep, reserved);
    };
    in(T());
    if constexpr (std::is_same_v<T, float>) {
      in(Half());
      in(BFloat16());
    }
    if (done) return;
    native::add_layer_norm_by_parts(output, sum, mean, rstd, mask, self, other, weight, bias, columns, eps, keep,
                                    reserved);
  }

 private:
  // False, with nothing done, for rows that are too long or not to be read as vectors.
  template <class T, class L>
  static bool launch(const Tensor& output, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                     const Tensor& mask, const Tensor& self, const Tensor& other, const Tensor& weight,
                     const Tensor& bias, int64_t columns, double eps, double keep, const PhiloxState& reserved) {
    using Math = opmath_t<T>;
    const AddForward<T, L> call{self.data_ptr<T>(),
                                other.data_ptr<L>(),
                                sum.data_ptr<T>(),
                                output.data_ptr<L>(),
                                mean.data_ptr<Math>(),
                                rstd.data_ptr<Math>(),
                                data_or_null<Math>(weight),
                                data_or_null<Math>(bias),
                                rstd.numel(),
                                columns,
                                static_cast<Math>(eps),
                                data_or_null<bool>(mask),
                                functors::Bernoulli(keep),
                                Scalar(1 / keep).to<Math>(),
                                reserved};
    using Access = RowAccess<T, true>;
    const bool wide = rows_are_wide<T>(columns, call.self, call.other, call.sum, call.y);
    if (call.rows == 0 || columns == 0 || !wide || columns > Access::kLongest) return false;
    const auto by_warps = [&](auto hold) {
      const auto l = RowLaunch::of_warps(call.rows);
      launch_kernel(kernels::add_layer_norm.name(), add_forward_warps<T, L, decltype(hold)::value>, {l.grid, l.block},
                    call);
    };
    if (!rows_are_wide<T>(columns, call.weight, call.bias) || !for_rows_of_warps<T>(columns, by_warps)) {
      const RowLaunch l(call.rows, columns, Access::kHeld);
      launch_kernel(kernels::add_layer_norm.name(), add_forward_rows<T, L>, {l.grid, l.block}, call);
    }
    return true;
  }
};

}  // namespace

void register_add_layer_norm() { set_by_dtype<kernels::add_layer_norm, AddLayerNormLoop, RealFloatTypes, 1>(kCUDA); }

}  // namespace rush::cuda
