// Random numbers on the GPU, by Note [One random stream] in core/philox.h.
#include "core/ops/random/random.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/random/random_words.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/functors/random_kernels.h"
#include "core/ops/nn/dropout.h"

namespace rush::cuda {

namespace {

template <class P>
struct NoProbability {
  const P* p;
  __device__ bool operator()(int64_t i) const { return !(p[i] >= 0 && p[i] <= 1); }
};

template <class T, class P>
struct DrawByProbability {
  T* out;
  const P* p;
  int64_t n;
  PhiloxState reserved;
  __device__ void operator()(int64_t group) const {
    const PhiloxBlock block = philox_block(reserved, static_cast<uint64_t>(group));
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int64_t i = 4 * group + e;
      if (i < n) out[i] = static_cast<T>(functors::Bernoulli(static_cast<double>(p[i]))(block[e]) ? 1.0f : 0.0f);
    }
  }
};

struct BernoulliTensorLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& p, const PhiloxState& reserved) {
    if (p.scalar_type() == kFloat64) return draw_by<T, double>(out, p, reserved);
    draw_by<T, float>(out, p, reserved);
  }

 private:
  template <class T, class P>
  static void draw_by(const Tensor& out, const Tensor& p, const PhiloxState& reserved) {
    const P* each = p.data_ptr<P>();
    report_if_any("bernoulli_", "expected probabilities in [0, 1]", p.numel(), NoProbability<P>{each});
    const int64_t n = out.numel();
    for_each_index("bernoulli_", (n + 3) / 4, DrawByProbability<T, P>{out.data_ptr<T>(), each, n, reserved});
  }
};

// Each thread keeps or drops four neighbouring elements.
template <class T, class M>
struct Dropout {
  T* out;
  bool* mask;
  const T* in;
  int64_t n;
  functors::Bernoulli keep;
  M scale;
  bool aligned;
  PhiloxState reserved;

  __device__ T kept(T value, bool keeps) const { return keeps ? static_cast<T>(static_cast<M>(value) * scale) : T(0); }
  __device__ void operator()(int64_t group) const {
    const int64_t first = 4 * group;
    const bool whole = aligned && first + 4 <= n;
    Lanes<T, 4> value;
    if (whole) value = *reinterpret_cast<const Lanes<T, 4>*>(in + first);
    const PhiloxBlock block = philox_block(reserved, static_cast<uint64_t>(group));
    if (whole) {
      Lanes<bool, 4> keeps;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        keeps.lane[e] = keep(block[e]);
        value.lane[e] = kept(value.lane[e], keeps.lane[e]);
      }
      *reinterpret_cast<Lanes<T, 4>*>(out + first) = value;
      *reinterpret_cast<Lanes<bool, 4>*>(mask + first) = keeps;
      return;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (first + e >= n) break;
      mask[first + e] = keep(block[e]);
      out[first + e] = kept(in[first + e], keep(block[e]));
    }
  }
};

struct DropoutLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& mask, const Tensor& input, double keep,
                  const PhiloxState& reserved) {
    using M = opmath_t<T>;
    const M scale = Scalar(1 / keep).to<M>();
    T* to = out.data_ptr<T>();
    bool* flags = mask.data_ptr<bool>();
    const T* from = input.data_ptr<T>();
    const bool aligned = can_store<4>(to) && can_store<4>(flags) && can_store<4>(from);
    const int64_t n = out.numel();
    for_each_index("native_dropout", (n + 3) / 4,
                   Dropout<T, M>{to, flags, from, n, functors::Bernoulli(keep), scale, aligned, reserved});
  }
};

struct DropoutBackwardLoop {
  template <class T>
  static void run(TensorIterator& it, double scale) {
    using M = opmath_t<T>;
    elementwise<T, T, bool>(it, functors::DropoutBackward<M>{Scalar(scale).to<M>()});
  }
};
void dropout_backward(TensorIterator& it, double scale) {
  pick<DropoutBackwardLoop>(FloatTypes(), it.dtype(), it.op())(it, scale);
}

}  // namespace

void register_random() {
  functors::set_random_kernels<Drawing>(kCUDA);
  set_by_dtype<kernels::bernoulli_tensor, BernoulliTensorLoop, RealAndBoolTypes>(kCUDA);
  set_by_dtype<kernels::dropout, DropoutLoop, FloatTypes>(kCUDA);
  kernels::dropout_backward.set(kCUDA, dropout_backward);
}

}  // namespace rush::cuda
