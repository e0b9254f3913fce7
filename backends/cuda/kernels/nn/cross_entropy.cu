// Fused cross entropy of scores (samples, classes): Note [Fused cross entropy]. A row of threads computes a sample.
#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/nn/class_loss.h"
#include "backends/cuda/kernels/reduce/online_sum.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/reduce.h"
#include "core/ops/factory/factories.h"

namespace rush::cuda {

namespace {

using kernels::CrossEntropyOptions;

template <class T>
struct Samples {
  using Math = opmath_t<T>;
  const T* scores;
  const int64_t* target;
  const Math* weight;  // null: ones
  Math* logsumexp;
  int64_t count, classes, ignore_index;
  Math target_share, spread;  // 1 - e and e / C
  DeviceCheck check;

  __device__ Math weight_of(int64_t c) const { return weight ? weight[c] : Math(1); }
  // Whether sample i counts. A target that is not a class is reported, and does not count.
  __device__ bool counts(int64_t y) const {
    return y != ignore_index && RUSH_DEVICE_CHECK(y >= 0 && y < classes, check, y, classes);
  }
};

template <class T>
using ScoreExp = std::conditional_t<sizeof(T) == 2, HardwareExp, LibraryExp>;
template <class T>
using ScoreSum = OnlineSum<opmath_t<T>, ScoreExp<T>>;

template <class Acc>
__device__ auto logsumexp_of(const Acc& acc) {
  return std::isinf(acc.largest) ? acc.largest : acc.largest + std::log(acc.sum);
}

template <class T>
inline constexpr int kBatch = sizeof(T) == 8 ? 2 : 4;  // vectors of a row that a thread has in flight

// The vector of a row of n scores that starts at c; beyond its end the lowest number.
template <class T, int kLanes>
__device__ Lanes<T, kLanes> vector_at(const T* x, int64_t c, int64_t n) {
  if (c + kLanes <= n) return *reinterpret_cast<const Lanes<T, kLanes>*>(x + c);
  Lanes<T, kLanes> vector;
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    vector.lane[l] = c + l < n ? x[c + l] : static_cast<T>(functors::lowest_of<opmath_t<T>>());
  }
  return vector;
}
template <class T, int kLanes>
__device__ void store_vector(T* x, int64_t c, int64_t n, const Lanes<T, kLanes>& vector) {
  if (c + kLanes <= n) {
    *reinterpret_cast<Lanes<T, kLanes>*>(x + c) = vector;
    return;
  }
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    if (c + l < n) x[c + l] = vector.lane[l];
  }
}

// What the calling thread reads of a row of n scores; keep(vector, c) is called for each vector, which starts at c.
template <class T, int kLanes, class Keep>
__device__ typename ScoreSum<T>::Acc take_row(const T* x, int64_t n, const Keep& keep) {
  const ScoreSum<T> f;
  auto acc = f.identity();
  const int64_t across = static_cast<int64_t>(blockDim.x) * kLanes;
  for (int64_t first = static_cast<int64_t>(threadIdx.x) * kLanes; first < n; first += kBatch<T> * across) {
    Lanes<T, kLanes> vectors[kBatch<T>];
#pragma unroll
    for (int v = 0; v < kBatch<T>; ++v) vectors[v] = vector_at<T, kLanes>(x, first + v * across, n);
#pragma unroll
    for (int v = 0; v < kBatch<T>; ++v) {
      if (first + v * across < n) keep(vectors[v], first + v * across);
    }
    acc = f.take(acc, vectors);
  }
  return acc;
}

// Writes the log-sum-exp, loss and weight of every sample.
template <class T, bool kWide>
__global__ void __launch_bounds__(1024) forward_kernel(Samples<T> s, LossShare<opmath_t<T>>* shares) {
  using Math = opmath_t<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < s.count; first += step) {
    const int64_t i = first + threadIdx.y, n = i < s.count ? s.classes : 0;
    const T* x = s.scores + i * s.classes;
    constexpr int kLanes = RowAccess<T, kWide>::kLanes;
    const auto skip = [](const Lanes<T, kLanes>&, int64_t) {};
    const Math level = logsumexp_of(combine_row(take_row<T, kLanes>(x, n, skip), ScoreSum<T>()));
    Math smooth(0);
    if (s.spread != 0) {
      for (int64_t c = threadIdx.x; c < n; c += blockDim.x)
        smooth += s.weight_of(c) * (level - static_cast<Math>(x[c]));
      smooth = sum_row(smooth);
    }
    if (threadIdx.x != 0 || i >= s.count) continue;
    s.logsumexp[i] = level;
    const int64_t y = s.target[i];
    LossShare<Math> share{Math(0), Math(0)};
    if (s.counts(y)) {
      share = {s.target_share * s.weight_of(y) * (level - static_cast<Math>(x[y])) + s.spread * smooth, s.weight_of(y)};
    }
    shares[i] = share;
  }
}

// dx = scale (A softmax(x) - spread w), less the target's share; A is the sum of a sample's weights. Zeros for samples
// that do not count, whatever their scores are.
template <class T>
struct Gradient {
  using Math = opmath_t<T>;
  Samples<T> s;
  const Math* grad;
  T* dx;
  const Math *all, *norm;  // the sum of all classes' weights; null: their number. What is divided by; null: one
  int64_t grad_step;
};

template <class T, bool kWide>
__global__ void __launch_bounds__(1024) backward_kernel(Gradient<T> call) {
  using Math = opmath_t<T>;
  constexpr int kLanes = RowAccess<T, kWide>::kLanes;
  const Samples<T>& s = call.s;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < s.count; i += step) {
    const int64_t y = s.target[i];
    const bool counts = y != s.ignore_index && y >= 0 && y < s.classes;
    if (threadIdx.x == 0) s.counts(y);
    T* to = call.dx + i * s.classes;
    const int64_t begin = static_cast<int64_t>(threadIdx.x) * kLanes,
                  across = static_cast<int64_t>(blockDim.x) * kLanes;
    if (!counts) {
      for (int64_t c = begin; c < s.classes; c += across) *reinterpret_cast<Lanes<T, kLanes>*>(to + c) = {};
      continue;
    }
    const Math scale = call.grad[i * call.grad_step] / (call.norm ? *call.norm : Math(1));
    const Math own = scale * s.target_share * s.weight_of(y), spread = scale * s.spread;
    const Math total = own + spread * (call.all ? *call.all : static_cast<Math>(s.classes));
    const Math level = s.logsumexp[i];
    for (int64_t batch = begin; batch < s.classes; batch += kBatch<T> * across) {
      Lanes<T, kLanes> in[kBatch<T>];
#pragma unroll
      for (int v = 0; v < kBatch<T>; ++v) {
        const int64_t c = batch + v * across;
        if (c < s.classes) in[v] = *reinterpret_cast<const Lanes<T, kLanes>*>(s.scores + i * s.classes + c);
      }
#pragma unroll
      for (int v = 0; v < kBatch<T>; ++v) {
        const int64_t c = batch + v * across;
        if (c >= s.classes) continue;
        Lanes<T, kLanes> out;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          Math value = total * ScoreExp<T>::of(static_cast<Math>(in[v].lane[l]) - level);
          if (spread != 0) value -= spread * s.weight_of(c + l);
          if (c + l == y) value -= own;
          out.lane[l] = static_cast<T>(value);
        }
        *reinterpret_cast<Lanes<T, kLanes>*>(to + c) = out;
      }
    }
  }
}

// ---- a loss and its gradient in one pass ----

// Note [Rows in shared memory]
// The gradient of a row needs its LSE, so it reads the row a second time. Fifty thousand scores do not fit the
// registers of one of two thread blocks on a multiprocessor, but they fit half of its shared memory: while one block
// waits for memory, the other computes. Each thread reads only what it wrote itself, so that no barrier is needed.
inline constexpr int kRowThreads = 512;
inline constexpr int kStaticShared = 1024;  // the most shared memory that the kernel needs besides the row

template <class T>
__global__ void __launch_bounds__(kRowThreads, 2)
    gradient_kernel(T* scores, int64_t row_stride, const int64_t* target, int n, int64_t ignore_index,
                    const opmath_t<T>* scale, LossShare<opmath_t<T>>* shares, DeviceCheck check) {
  using Math = opmath_t<T>;
  constexpr int kLanes = RowAccess<T, true>::kLanes;
  using Vector = Lanes<T, kLanes>;
  extern __shared__ float4 row_memory[];
  T* held = reinterpret_cast<T*>(row_memory);
  const int64_t i = blockIdx.x;
  T* row = scores + i * row_stride;
  const int begin = static_cast<int>(threadIdx.x) * kLanes;
  constexpr int kAcross = kRowThreads * kLanes;
  const int64_t y = target[i];
  if (y == ignore_index || y < 0 || y >= n) {
    for (int c = begin; c < n; c += kAcross) store_vector(row, c, n, Vector{});
    if (threadIdx.x != 0) return;
    if (y != ignore_index) RUSH_DEVICE_CHECK(false, check, y, n);
    shares[i] = {Math(0), Math(0)};
    return;
  }
  const auto keep = [=](const Vector& vector, int64_t c) { *reinterpret_cast<Vector*>(held + c) = vector; };
  const auto acc = combine_row(take_row<T, kLanes>(row, n, keep), ScoreSum<T>());
  const Math level = logsumexp_of(acc), factor = scale ? *scale : Math(1);
  for (int c = begin; c < n; c += kAcross) {
    const Vector in = *reinterpret_cast<const Vector*>(held + c);
    Math value[kLanes];
#pragma unroll
    for (int l = 0; l < kLanes; ++l) value[l] = factor * ScoreExp<T>::of(static_cast<Math>(in.lane[l]) - level);
    if (c <= y && y < c + kLanes) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        if (c + l != y) continue;
        shares[i] = {level - static_cast<Math>(in.lane[l]), Math(1)};
        value[l] -= factor;
      }
    }
    Vector out;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) out.lane[l] = static_cast<T>(value[l]);
    store_vector(row, c, n, out);
  }
}

struct CrossEntropyGradientLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& scores, const Tensor& target, int64_t ignore_index,
                  const Tensor& scale) {
    using Math = opmath_t<T>;
    const char* op = kernels::cross_entropy_gradient.name();
    const int64_t count = scores.size(0), classes = scores.size(1);
    T* x = scores.data_ptr<T>();
    constexpr int64_t kLanes = RowAccess<T, true>::kLanes;
    const int64_t vectors = (classes + kLanes - 1) / kLanes, row_bytes = 16 * vectors;
    const auto most = static_cast<int64_t>(current_properties().sharedMemPerBlockOptin) - kStaticShared;
    const bool is_wide = scores.stride(1) == 1 && rows_are_wide<T>(scores.stride(0), x);
    // With short rows, most threads of a block would be idle; and the cache holds the rows between the two passes.
    const bool fits = is_wide && classes >= 4 * kRowThreads && row_bytes <= most;
    if (!fits || count == 0 || count > std::numeric_limits<int32_t>::max()) {
      return native::cross_entropy_gradient_by_parts(output, scores, target, ignore_index, scale);
    }
    const Scratch shares(static_cast<size_t>(count) * sizeof(LossShare<Math>)), total(sizeof(Math));
    auto* each = shares.as<LossShare<Math>>();
    const auto kernel = gradient_kernel<T>;
    const auto bytes = static_cast<int>(row_bytes);
    RUSH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    RUSH_CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    launch_kernel(op, kernel, {static_cast<unsigned>(count), kRowThreads, static_cast<size_t>(bytes)}, x,
                  scores.stride(0), target.data_ptr<int64_t>(), static_cast<int>(classes), ignore_index,
                  data_or_null<Math>(scale), each, device_check(op));
    store_losses<Math>(op, each, count, output, total.as<Math>(), Reduction::Sum, true);
  }
};

template <class T>
Samples<T> samples_of(const char* op, const Tensor& scores, const Tensor& target, const Tensor& weight,
                      const Tensor& logsumexp, const CrossEntropyOptions& options) {
  using Math = opmath_t<T>;
  const int64_t classes = scores.size(-1);
  return {scores.data_ptr<T>(),
          target.data_ptr<int64_t>(),
          weight.defined() ? weight.data_ptr<Math>() : nullptr,
          logsumexp.data_ptr<Math>(),
          logsumexp.numel(),
          classes,
          options.ignore_index,
          static_cast<Math>(1 - options.label_smoothing),
          static_cast<Math>(options.label_smoothing / static_cast<double>(classes)),
          device_check(op)};
}

struct CrossEntropyLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& logsumexp, const Tensor& total_weight, const Tensor& scores,
                  const Tensor& target, const Tensor& weight, const CrossEntropyOptions& options) {
    using Math = opmath_t<T>;
    const char* op = kernels::cross_entropy.name();
    const Samples<T> s = samples_of<T>(op, scores, target, weight, logsumexp, options);
    const Scratch shares(static_cast<size_t>(s.count) * sizeof(LossShare<Math>));
    auto* each = shares.as<LossShare<Math>>();
    if (s.count > 0) {
      const bool wide = rows_are_wide<T>(s.classes, s.scores);
      const RowLaunch l(s.count, s.classes, 16);
      launch_kernel(op, wide ? forward_kernel<T, true> : forward_kernel<T, false>, {l.grid, l.block}, s, each);
    }
    store_losses<Math>(op, each, s.count, output, total_weight.data_ptr<Math>(), options.reduction, true);
  }
};

struct CrossEntropyBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& scores, const Tensor& target,
                  const Tensor& weight, const Tensor& logsumexp, const Tensor& total_weight,
                  const CrossEntropyOptions& options) {
    using Math = opmath_t<T>;
    const char* op = kernels::cross_entropy_backward.name();
    const Samples<T> s = samples_of<T>(op, scores, target, weight, logsumexp, options);
    if (s.count * s.classes == 0) return;
    const Scratch all(sizeof(Math));
    if (s.weight) {
      using Add = functors::Sum<Math>;
      reduce_dims(op, s.weight, Add(), StoreResult<Math, Add>{all.as<Math>(), Add()}, {{s.classes, 1, 0, true}});
    }
    const Gradient<T> call{s,
                           grad_output.data_ptr<Math>(),
                           grad_input.data_ptr<T>(),
                           s.weight ? all.as<Math>() : nullptr,
                           options.reduction == Reduction::Mean ? total_weight.data_ptr<Math>() : nullptr,
                           options.reduction == Reduction::None ? 1 : 0};
    const bool wide = rows_are_wide<T>(s.classes, s.scores, call.dx);
    const RowLaunch l(s.count, s.classes, 16);
    launch_kernel(op, wide ? backward_kernel<T, true> : backward_kernel<T, false>, {l.grid, l.block}, call);
  }
};

}  // namespace

void register_cross_entropy() {
  set_by_dtype<kernels::cross_entropy, CrossEntropyLoop, RealFloatTypes, 3>(kCUDA);
  set_by_dtype<kernels::cross_entropy_backward, CrossEntropyBackwardLoop, RealFloatTypes, 2>(kCUDA);
  set_by_dtype<kernels::cross_entropy_gradient, CrossEntropyGradientLoop, RealFloatTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
