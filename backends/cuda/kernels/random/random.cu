// Random numbers on the GPU, by Note [One random stream] in core/philox.h.
#include "core/ops/random/random.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/random/random_words.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/functors/random.h"
#include "core/ops/nn/dropout.h"

namespace rush::cuda {

namespace {

struct UniformLoop {
  template <class T>
  static void run(const Tensor& out, double from, double to, const PhiloxState& reserved) {
    draw<T, kDrawWords<T>>("uniform_", out, reserved, functors::UniformOf<T, draw_math_t<T>>(from, to));
  }
};

template <template <class> class F>
struct NormalLoop {
  template <class T>
  static void run(const Tensor& out, double mean, double std, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    draw_normal<T>("normal_", out, reserved, F<M>{static_cast<M>(mean), static_cast<M>(std)});
  }
};

// f of a number in (0, 1].
template <class F>
struct OfPositive {
  F f;
  template <class Bits>
  __device__ auto operator()(Bits bits) const {
    return f(functors::positive_uniform(bits));
  }
};
template <class T, class F>
void draw_positive(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
  draw<T, kDrawWords<T>>(op, out, reserved, OfPositive<F>{f});
}

struct CauchyLoop {
  template <class T>
  static void run(const Tensor& out, double median, double sigma, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    draw_positive<T>("cauchy_", out, reserved, functors::Cauchy<M>{static_cast<M>(median), static_cast<M>(sigma)});
  }
};

struct ExponentialLoop {
  template <class T>
  static void run(const Tensor& out, double lambda, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    draw_positive<T>("exponential_", out, reserved, functors::Exponential<M>{static_cast<M>(lambda)});
  }
};

struct GeometricLoop {
  template <class T>
  static void run(const Tensor& out, double p, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    const functors::Geometric<M> trials{static_cast<M>(std::log1p(-p))};
    draw_positive<T>("geometric_", out, reserved, functors::GeometricOf<T, M>{trials});
  }
};

struct OneOrZero {
  functors::Bernoulli is_one;
  __device__ float operator()(uint32_t word) const { return is_one(word) ? 1.0f : 0.0f; }
};
struct BernoulliLoop {
  template <class T>
  static void run(const Tensor& out, double p, const PhiloxState& reserved) {
    draw<T, 1>("bernoulli_", out, reserved, OneOrZero{functors::Bernoulli(p)});
  }
};

struct RandomLoop {
  template <class T>
  static void run(const Tensor& out, int64_t from, uint64_t range, const PhiloxState& reserved) {
    const functors::Integer integer{static_cast<uint64_t>(from), range};
    if (range != 0 && range <= uint64_t{1} << 32) return draw<T, 1>("random_", out, reserved, integer);
    draw<T, 2>("random_", out, reserved, integer);
  }
};

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
    RUSH_CHECK_VALUE(!found_any("bernoulli_", p.numel(), NoProbability<P>{each}),
                     "bernoulli_: expected probabilities in [0, 1]");
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
  set_by_dtype<kernels::uniform, UniformLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::normal, NormalLoop<functors::Normal>, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::log_normal, NormalLoop<functors::LogNormal>, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::cauchy, CauchyLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::exponential, ExponentialLoop, RealFloatTypes>(kCUDA);
  set_by_dtype<kernels::geometric, GeometricLoop, RealTypes>(kCUDA);
  set_by_dtype<kernels::bernoulli, BernoulliLoop, RealAndBoolTypes>(kCUDA);
  set_by_dtype<kernels::bernoulli_tensor, BernoulliTensorLoop, RealAndBoolTypes>(kCUDA);
  set_by_dtype<kernels::random, RandomLoop, RealAndBoolTypes>(kCUDA);
  set_by_dtype<kernels::dropout, DropoutLoop, FloatTypes>(kCUDA);
  kernels::dropout_backward.set(kCUDA, dropout_backward);
}

}  // namespace rush::cuda
