// The kernels of distributions by Note [One random stream] in core/philox.h, for every backend.
#pragma once
#include <cmath>

#include "backends/functors/pick.h"
#include "backends/functors/random.h"
#include "core/ops/random/random.h"

namespace rush::functors {

// An element takes two words in double precision, and one in narrower dtypes.
template <class T>
using draw_math_t = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
inline constexpr int kDrawWords = std::is_same_v<T, double> ? 2 : 1;

// f of a number in (0, 1].
template <class F>
struct OfPositive {
  F f;
  template <class Bits>
  RUSH_HD auto operator()(Bits bits) const {
    return f(positive_uniform(bits));
  }
};

struct OneOrZero {
  Bernoulli is_one;
  RUSH_HD float operator()(uint32_t word) const { return is_one(word) ? 1.0f : 0.0f; }
};

// In all loops Drawing is the backend's:
//   Drawing::words<T, k>(op, out, reserved, f)   out[i] = f(element i's k words), a uint32_t or a uint64_t
//   Drawing::normal<T>(op, out, reserved, f)     out[i] = f(a normal number with deviation 1)
template <class Drawing>
struct UniformLoop {
  template <class T>
  static void run(const Tensor& out, double from, double to, const PhiloxState& reserved) {
    Drawing::template words<T, kDrawWords<T>>("uniform_", out, reserved, UniformOf<T, draw_math_t<T>>(from, to));
  }
};

template <class Drawing, template <class> class F>
struct NormalLoop {
  template <class T>
  static void run(const Tensor& out, double mean, double std, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    Drawing::template normal<T>("normal_", out, reserved, F<M>{static_cast<M>(mean), static_cast<M>(std)});
  }
};

template <class Drawing>
struct CauchyLoop {
  template <class T>
  static void run(const Tensor& out, double median, double sigma, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    Drawing::template words<T, kDrawWords<T>>("cauchy_", out, reserved,
                                              OfPositive<Cauchy<M>>{{static_cast<M>(median), static_cast<M>(sigma)}});
  }
};

template <class Drawing>
struct ExponentialLoop {
  template <class T>
  static void run(const Tensor& out, double lambda, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    Drawing::template words<T, kDrawWords<T>>("exponential_", out, reserved,
                                              OfPositive<Exponential<M>>{{static_cast<M>(lambda)}});
  }
};

template <class Drawing>
struct GeometricLoop {
  template <class T>
  static void run(const Tensor& out, double p, const PhiloxState& reserved) {
    using M = draw_math_t<T>;
    const Geometric<M> trials{static_cast<M>(std::log1p(-p))};
    Drawing::template words<T, kDrawWords<T>>("geometric_", out, reserved,
                                              OfPositive<GeometricOf<T, M>>{GeometricOf<T, M>{trials}});
  }
};

template <class Drawing>
struct BernoulliLoop {
  template <class T>
  static void run(const Tensor& out, double p, const PhiloxState& reserved) {
    Drawing::template words<T, 1>("bernoulli_", out, reserved, OneOrZero{Bernoulli(p)});
  }
};

template <class Drawing>
struct RandomLoop {
  template <class T>
  static void run(const Tensor& out, int64_t from, uint64_t range, const PhiloxState& reserved) {
    const Integer integer{static_cast<uint64_t>(from), range};
    const bool one_word = range != 0 && range <= uint64_t{1} << 32;
    if (one_word) return Drawing::template words<T, 1>("random_", out, reserved, integer);
    Drawing::template words<T, 2>("random_", out, reserved, integer);
  }
};

template <class Drawing>
void set_random_kernels(DeviceType device) {
  set_by_dtype<kernels::uniform, UniformLoop<Drawing>, RealFloatTypes>(device);
  set_by_dtype<kernels::normal, NormalLoop<Drawing, Normal>, RealFloatTypes>(device);
  set_by_dtype<kernels::log_normal, NormalLoop<Drawing, LogNormal>, RealFloatTypes>(device);
  set_by_dtype<kernels::cauchy, CauchyLoop<Drawing>, RealFloatTypes>(device);
  set_by_dtype<kernels::exponential, ExponentialLoop<Drawing>, RealFloatTypes>(device);
  set_by_dtype<kernels::geometric, GeometricLoop<Drawing>, RealTypes>(device);
  set_by_dtype<kernels::bernoulli, BernoulliLoop<Drawing>, RealAndBoolTypes>(device);
  set_by_dtype<kernels::random, RandomLoop<Drawing>, RealAndBoolTypes>(device);
}

}  // namespace rush::functors
