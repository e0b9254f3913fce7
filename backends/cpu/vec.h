// Vec: as many floats as a vector register holds, with the arithmetic and the functions that functors use.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/macros.h"

namespace rush::cpu {

// Note [Vectors of floats]
// GCC and clang turn arithmetic on their vector types into single instructions of the CPU that they compile for: on
// AVX-512 16 floats, on AVX 8, elsewhere 4. The C library's exp and its like take one number, so those that neural
// networks spend their time in are here (Vec's functions below) as polynomials, accurate to a few units in the last
// place, infinities, NaN and subnormal results included. A number's result does not depend on where in a tensor it
// stands: the end of a loop runs in a padded register, never as scalar code.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

class Vec {
 public:
  static constexpr int kSize = kVectorBytes / sizeof(float);
  typedef float Floats __attribute__((vector_size(kVectorBytes)));
  typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));
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

  Vec() = default;
  Vec(Floats lanes) : lanes_(lanes) {}
  // The same number in every lane. Subtracting zero keeps -0.
  explicit Vec(float value) : lanes_(value - Floats{}) {}
  explicit Vec(double value) : Vec(static_cast<float>(value)) {}
  explicit Vec(int value) : Vec(static_cast<float>(value)) {}

  static Vec load(const float* from) {
    Vec v;
    std::memcpy(&v.lanes_, from, sizeof(Floats));
    return v;
  }
  void store(float* to) const { std::memcpy(to, &lanes_, sizeof(Floats)); }
  Floats lanes() const { return lanes_; }
  Ints bits() const { return std::bit_cast<Ints>(lanes_); }
  static Vec from_bits(Ints bits) { return Vec(std::bit_cast<Floats>(bits)); }

  friend Vec operator+(Vec a, Vec b) { return Vec(a.lanes_ + b.lanes_); }
  friend Vec operator-(Vec a, Vec b) { return Vec(a.lanes_ - b.lanes_); }
  friend Vec operator*(Vec a, Vec b) { return Vec(a.lanes_ * b.lanes_); }
  friend Vec operator/(Vec a, Vec b) { return Vec(a.lanes_ / b.lanes_); }
  friend Vec operator-(Vec a) { return Vec(-a.lanes_); }
  friend Mask operator<(Vec a, Vec b) { return {a.lanes_ < b.lanes_}; }
  friend Mask operator<=(Vec a, Vec b) { return {a.lanes_ <= b.lanes_}; }
  friend Mask operator>(Vec a, Vec b) { return {a.lanes_ > b.lanes_}; }
  friend Mask operator>=(Vec a, Vec b) { return {a.lanes_ >= b.lanes_}; }
  friend Mask operator==(Vec a, Vec b) { return {a.lanes_ == b.lanes_}; }
  friend Mask operator!=(Vec a, Vec b) { return {a.lanes_ != b.lanes_}; }
  // condition ? a : b, lane by lane.
  friend Vec select(Mask condition, Vec a, Vec b) { return Vec(condition.lanes ? a.lanes_ : b.lanes_); }
  friend Vec abs(Vec a) { return from_bits(a.bits() & 0x7fffffff); }
  // |a| with the sign of b.
  friend Vec copysign(Vec a, Vec b) { return from_bits((a.bits() & 0x7fffffff) | (b.bits() & INT32_MIN)); }
  // A function that has no vector form, lane by lane.
  template <class Fn>
  Vec each(const Fn& fn) const {
    Vec out;
    for (int i = 0; i < kSize; ++i) out.lanes_[i] = fn(lanes_[i]);
    return out;
  }

 private:
  Floats lanes_;
};

// c[0] + x (c[1] + x (c[2] + ...)).
template <size_t N>
RUSH_ALWAYS_INLINE Vec polynomial(Vec x, const float (&c)[N]) {
  Vec sum(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + Vec(c[i]);
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

}  // namespace rush::cpu
