// Vec and DoubleVec: as many floats or doubles as a vector register holds, with the arithmetic and the functions that
// functors use.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/macros.h"

namespace rush::cpu {

// Note [Vectors of floats]
// GCC and clang turn arithmetic on their vector types into single instructions of the CPU that they compile for: on
// AVX-512 16 floats, on AVX 8, elsewhere 4, and half as many doubles. The C library's exp and its like take one number,
// so those that neural networks spend their time in are here (Vec's functions below) as polynomials, accurate to a few
// units in the last place, infinities, NaN and subnormal results included. Those of doubles are glibc's own vector
// functions, see double_vec_math.h. A number's result does not depend on where in a tensor it stands: the end of a loop
// runs in a padded register, never as scalar code.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
class VecOf {
 public:
  static constexpr int kSize = kVectorBytes / sizeof(T);
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Floats __attribute__((vector_size(kVectorBytes)));
  typedef Bits Ints __attribute__((vector_size(kVectorBytes)));
  // All bits of a lane set where a comparison holds.
  struct Mask {
    Ints lanes;
    friend Mask operator&(Mask a, Mask b) { return {a.lanes & b.lanes}; }
    friend Mask operator|(Mask a, Mask b) { return {a.lanes | b.lanes}; }
    friend Mask operator^(Mask a, Mask b) { return {a.lanes ^ b.lanes}; }
    friend Mask operator!(Mask a) { return {~a.lanes}; }
    bool any() const { return any_bit(std::bit_cast<std::array<uint64_t, kVectorBytes / 8>>(lanes)); }

   private:
    // By halves, which takes a few instructions where a loop over the lanes would take one for each.
    template <size_t N>
    static bool any_bit(const std::array<uint64_t, N>& words) {
      if constexpr (N == 1) {
        return words[0] != 0;
      } else {
        std::array<uint64_t, N / 2> half;
        for (size_t i = 0; i < N / 2; ++i) half[i] = words[i] | words[i + N / 2];
        return any_bit(half);
      }
    }
  };

  VecOf() = default;
  VecOf(Floats lanes) : lanes_(lanes) {}
  // The same number in every lane. Subtracting zero keeps -0.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit VecOf(Number value) : lanes_(static_cast<T>(value) - Floats{}) {}

  static VecOf load(const T* from) {
    VecOf v;
    std::memcpy(&v.lanes_, from, sizeof(Floats));
    return v;
  }
  void store(T* to) const { std::memcpy(to, &lanes_, sizeof(Floats)); }
  Floats lanes() const { return lanes_; }
  Ints bits() const { return std::bit_cast<Ints>(lanes_); }
  static VecOf from_bits(Ints bits) { return VecOf(std::bit_cast<Floats>(bits)); }

  friend VecOf operator+(VecOf a, VecOf b) { return VecOf(a.lanes_ + b.lanes_); }
  friend VecOf operator-(VecOf a, VecOf b) { return VecOf(a.lanes_ - b.lanes_); }
  friend VecOf operator*(VecOf a, VecOf b) { return VecOf(a.lanes_ * b.lanes_); }
  friend VecOf operator/(VecOf a, VecOf b) { return VecOf(a.lanes_ / b.lanes_); }
  friend VecOf operator-(VecOf a) { return VecOf(-a.lanes_); }
  friend Mask operator<(VecOf a, VecOf b) { return {a.lanes_ < b.lanes_}; }
  friend Mask operator<=(VecOf a, VecOf b) { return {a.lanes_ <= b.lanes_}; }
  friend Mask operator>(VecOf a, VecOf b) { return {a.lanes_ > b.lanes_}; }
  friend Mask operator>=(VecOf a, VecOf b) { return {a.lanes_ >= b.lanes_}; }
  friend Mask operator==(VecOf a, VecOf b) { return {a.lanes_ == b.lanes_}; }
  friend Mask operator!=(VecOf a, VecOf b) { return {a.lanes_ != b.lanes_}; }
  // condition ? a : b, lane by lane.
  friend VecOf select(Mask condition, VecOf a, VecOf b) { return VecOf(condition.lanes ? a.lanes_ : b.lanes_); }
  friend VecOf abs(VecOf a) { return from_bits(a.bits() & ~kSign); }
  // |a| with the sign of b.
  friend VecOf copysign(VecOf a, VecOf b) { return from_bits((a.bits() & ~kSign) | (b.bits() & kSign)); }
  // A function that has no vector form, lane by lane.
  template <class Fn>
  VecOf each(const Fn& fn) const {
    VecOf out;
    for (int i = 0; i < kSize; ++i) out.lanes_[i] = fn(lanes_[i]);
    return out;
  }

 private:
  static constexpr Bits kSign = std::numeric_limits<Bits>::min();
  Floats lanes_;
};
using Vec = VecOf<float>;
using DoubleVec = VecOf<double>;

// fn(a, b), a lane at a time.
template <class T, class Fn>
RUSH_NOINLINE VecOf<T> lane_by_lane(VecOf<T> a, VecOf<T> b, const Fn& fn) {
  T x[VecOf<T>::kSize], y[VecOf<T>::kSize];
  a.store(x);
  b.store(y);
  for (int i = 0; i < VecOf<T>::kSize; ++i) x[i] = fn(x[i], y[i]);
  return VecOf<T>::load(x);
}

// `result` where it holds, and elsewhere what fn gives for a lane: which way a number goes does not depend on those
// beside it.
template <class T, class Fn>
RUSH_ALWAYS_INLINE VecOf<T> or_by_lane(typename VecOf<T>::Mask holds, VecOf<T> result, VecOf<T> x, const Fn& fn) {
  return (!holds).any() ? select(holds, result, x.each(fn)) : result;
}
template <class T, class Fn>
RUSH_ALWAYS_INLINE VecOf<T> or_by_lane(typename VecOf<T>::Mask holds, VecOf<T> result, VecOf<T> a, VecOf<T> b,
                                       const Fn& fn) {
  return (!holds).any() ? select(holds, result, lane_by_lane(a, b, fn)) : result;
}

// c[0] + x (c[1] + x (c[2] + ...)).
template <size_t N>
RUSH_ALWAYS_INLINE Vec polynomial(Vec x, const float (&c)[N]) {
  Vec sum(c[N - 1]);
#pragma GCC unroll 16
  for (size_t i = 1; i < N; ++i) sum = sum * x + Vec(c[N - 1 - i]);
  return sum;
}

// Defined in vec_math.h.
Vec exp(Vec x);
Vec exp2(Vec x);
Vec expm1(Vec x);
Vec log(Vec x);
Vec log2(Vec x);
Vec log10(Vec x);
Vec log1p(Vec x);
Vec sin(Vec x);
Vec cos(Vec x);
Vec tan(Vec x);
Vec atan(Vec x);
Vec atan2(Vec y, Vec x);
Vec asin(Vec x);
Vec acos(Vec x);
Vec sinh(Vec x);
Vec cosh(Vec x);
Vec tanh(Vec x);
Vec atanh(Vec x);
Vec erf(Vec x);
Vec pow(Vec base, Vec exponent);
Vec fmod(Vec a, Vec b);
Vec erfc(Vec x);
Vec lgamma(Vec x);
Vec hypot(Vec a, Vec b);
Vec nextafter(Vec from, Vec to);

}  // namespace rush::cpu
