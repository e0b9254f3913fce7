// exp, log, sin, tanh, erf, pow and so on of vectors of floats. The polynomials are minimax approximations, fitted by
// Remez' algorithm on the interval named with each.
#pragma once
#include <cmath>
#include <limits>

#include "backends/cpu/blocks.h"
#include "backends/cpu/pointwise/double_vec_math.h"
#include "backends/functors/binary.h"

namespace rush::cpu {

namespace vec {

typedef uint32_t UInts __attribute__((vector_size(kVectorBytes)));

// x rounded to an integer, for |x| < 2^22. Adding 1.5 * 2^23 leaves no bits for the fraction, and the integer in the
// lowest bits.
struct Rounded {
  Vec number;
  Vec::Ints integer;
  explicit Rounded(Vec x) {
    const Vec shift(12582912.0f);
    const Vec shifted = x + shift;
    number = shifted - shift;
    integer = shifted.bits() - shift.bits();
  }
};

// 2^n for -126 <= n <= 127.
RUSH_ALWAYS_INLINE Vec power_of_two(Vec::Ints n) {
  return Vec::from_bits(std::bit_cast<Vec::Ints>(std::bit_cast<UInts>(n + 127) << 23));
}

// value * 2^n for -150 <= n <= 129, where 2^n itself may not be a float.
RUSH_ALWAYS_INLINE Vec scale(Vec value, Vec::Ints n) {
  const Vec::Ints half = n >> 1;
  return value * power_of_two(half) * power_of_two(n - half);
}

// x = n ln 2 + rest. ln 2 in two parts, of which n times the first is exact.
struct ExpReduced {
  Rounded n;
  Vec rest;
  explicit ExpReduced(Vec x) : n(x * Vec(1.44269504088896f)) {
    rest = x - n.number * Vec(0.693359375f);
    rest = rest - n.number * Vec(-2.12194440054691e-4f);
  }
};

// e^x - 1 for |x| <= ln 2 / 2.
RUSH_ALWAYS_INLINE Vec expm1_near_zero(Vec x) {
  const float c[] = {0.5000000014f, 0.1666666676f, 0.04166646458f, 0.008333285926f, 0.001393368806f, 1.990764087e-4f};
  return x + x * x * polynomial(x, c);
}

// e^x where it is a normal number: without limits, and 2^n in one factor.
RUSH_ALWAYS_INLINE Vec exp_normal(Vec x) {
  const ExpReduced reduced(x);
  const Vec power = power_of_two(reduced.n.integer);
  return power + power * expm1_near_zero(reduced.rest);
}

// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log1pf = log(1 + f).
struct LogReduced {
  Vec k, f, log1pf;
  explicit LogReduced(Vec x) {
    const Vec tiny(std::numeric_limits<float>::min());
    const Vec::Mask subnormal = x < tiny;
    const Vec normal = select(subnormal, x * Vec(8388608.0f), x);
    // Less the bits of sqrt(1/2); unsigned, because those of negative numbers wrap (log_special handles them).
    const auto shifted = std::bit_cast<Vec::Ints>(std::bit_cast<UInts>(normal.bits()) - 0x3f3504f3u);
    const Vec::Ints exponent = shifted >> 23;
    f = Vec::from_bits((shifted & 0x007fffff) + 0x3f3504f3) - Vec(1.0f);
    k = Vec(__builtin_convertvector(exponent, Vec::Floats)) - select(subnormal, Vec(23.0f), Vec(0.0f));
    const float c[] = {0.3333331043f,  -0.2499998656f, 0.2000222785f,  -0.1666925378f, 0.1421863129f,
                       -0.1238427969f, 0.1187313112f,  -0.1179029614f, 0.06915577209f};
    log1pf = f - (Vec(0.5f) * f * f - f * f * f * polynomial(f, c));
  }
};

// What the logarithms of 0, infinity, NaN and negative numbers are, instead of `result`.
RUSH_ALWAYS_INLINE Vec log_special(Vec x, Vec result) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  result = select(x < Vec(kInf), result, x);
  result = select(x == Vec(0.0f), Vec(-kInf), result);
  return select(x < Vec(0.0f), Vec(std::numeric_limits<float>::quiet_NaN()), result);
}

// x = quarters * pi/2 + r with |r| <= pi/4, and the sine and cosine of r, for |x| <= kMaxAngle.
inline constexpr float kMaxAngle = 8192;
struct Angle {
  Vec::Ints quarters;
  Vec sin_r, cos_r;
  explicit Angle(Vec x) {
    const Rounded turns(x * Vec(0.63661977236758f));
    quarters = turns.integer;
    // pi/2 in three parts, of which the first two times the number of quarter turns are exact.
    Vec r = x - turns.number * Vec(1.5703125f);
    r = r - turns.number * Vec(4.837512969970703125e-4f);
    r = r - turns.number * Vec(7.54978995489188216e-8f);
    const Vec z = r * r;
    const float s[] = {-0.1666666666f, 0.008333331868f, -1.984008272e-4f, 2.724939005e-6f};
    const float c[] = {0.04166666666f, -0.001388888767f, 2.480059694e-5f, -2.730050296e-7f};
    sin_r = r + r * z * polynomial(z, s);
    cos_r = Vec(1.0f) - Vec(0.5f) * z + z * z * polynomial(z, c);
  }
  Vec::Mask odd() const { return {(quarters & 1) != 0}; }
  // The sine of x plus so many quarter turns.
  Vec sine(int more) const {
    const Vec::Ints total = quarters + more;
    const Vec value = select(Vec::Mask{(total & 1) != 0}, cos_r, sin_r);
    return Vec::from_bits(value.bits() ^ ((total & 2) << 30));
  }
};

// atan(t) for 0 <= t <= 1.
RUSH_ALWAYS_INLINE Vec atan_below_one(Vec t) {
  const float c[] = {-0.3333333214f, 0.1999979008f,   -0.142796164f, 0.1104203739f,   -0.0868905215f,
                     0.06318236954f, -0.03667048823f, 0.013996611f,  -0.002508608584f};
  const Vec z = t * t;
  return t + t * z * polynomial(z, c);
}

}  // namespace vec

// The compiler makes one instruction of these, where the CPU has it.
template <class T>
VecOf<T> sqrt(VecOf<T> x) {
  return x.each([](T a) { return std::sqrt(a); });
}
template <class T>
VecOf<T> floor(VecOf<T> x) {
  return x.each([](T a) { return std::floor(a); });
}
template <class T>
VecOf<T> nearbyint(VecOf<T> x) {
  return x.each([](T a) { return std::nearbyint(a); });
}

RUSH_ALWAYS_INLINE Vec exp(Vec x) {
  x = select(x > Vec(89.0f), Vec(89.0f), x);
  x = select(x < Vec(-104.0f), Vec(-104.0f), x);
  const vec::ExpReduced reduced(x);
  return vec::scale(Vec(1.0f) + vec::expm1_near_zero(reduced.rest), reduced.n.integer);
}

RUSH_ALWAYS_INLINE Vec exp2(Vec x) {
  x = select(x > Vec(129.0f), Vec(129.0f), x);
  x = select(x < Vec(-150.0f), Vec(-150.0f), x);
  const vec::Rounded n(x);
  const Vec r = x - n.number;
  const float c[] = {0.6931471806f,   0.2402265092f,   0.05550410929f, 0.00961805638f,
                     0.001333345412f, 1.546156325e-4f, 1.531019805e-5f};
  return vec::scale(Vec(1.0f) + r * polynomial(r, c), n.integer);
}

// 2^n (e^r - 1) + (2^n - 1), all halved while 2^n may overflow.
RUSH_ALWAYS_INLINE Vec expm1(Vec x) {
  x = select(x > Vec(89.0f), Vec(89.0f), x);
  x = select(x < Vec(-80.0f), Vec(-80.0f), x);
  const vec::ExpReduced reduced(x);
  const Vec half_power = vec::power_of_two(reduced.n.integer - 1);
  const Vec half = half_power * vec::expm1_near_zero(reduced.rest) + (half_power - Vec(0.5f));
  return half + half;
}

RUSH_ALWAYS_INLINE Vec log(Vec x) {
  const vec::LogReduced reduced(x);
  const Vec low = reduced.log1pf + reduced.k * Vec(-2.12194440054691e-4f);
  return vec::log_special(x, low + reduced.k * Vec(0.693359375f));
}

inline Vec log2(Vec x) {
  const vec::LogReduced reduced(x);
  return vec::log_special(x, reduced.k + reduced.log1pf * Vec(1.44269504088896f));
}

inline Vec log10(Vec x) {
  const vec::LogReduced reduced(x);
  // log10(2) in two parts.
  const Vec low = reduced.log1pf * Vec(0.434294481903252f) + reduced.k * Vec(-3.84716495883e-5f);
  return vec::log_special(x, low + reduced.k * Vec(0.301068499622777f));
}

// log(u) x / (u - 1) with u = 1 + x as rounded: the rounding's effect on both factors cancels. Kahan; Goldberg, What
// Every Computer Scientist Should Know About Floating-Point Arithmetic, theorem 4.
RUSH_ALWAYS_INLINE Vec log1p(Vec x) {
  const Vec u = x + Vec(1.0f);
  const Vec small = u - Vec(1.0f);
  const Vec result = log(u) * (x / small);
  const Vec plain = select(small == Vec(0.0f), x, result);
  return select(u < Vec(std::numeric_limits<float>::infinity()), plain, log(u));
}

// fn(x) by the angle where it is small enough, elsewhere by the C library.
template <class ByAngle, class Fn>
RUSH_ALWAYS_INLINE Vec of_angle(Vec x, float most, const ByAngle& by_angle, const Fn& fn) {
  const Vec::Mask small = abs(x) <= Vec(most);
  return or_by_lane(small, by_angle(vec::Angle(select(small, x, Vec(0.0f)))), x, fn);
}

inline Vec sin(Vec x) {
  return of_angle(
      x, vec::kMaxAngle, [](const vec::Angle& angle) { return angle.sine(0); }, [](float a) { return std::sin(a); });
}

inline Vec cos(Vec x) {
  return of_angle(
      x, vec::kMaxAngle, [](const vec::Angle& angle) { return angle.sine(1); }, [](float a) { return std::cos(a); });
}

inline Vec tan(Vec x) {
  const auto by_angle = [](const vec::Angle& angle) {
    return select(angle.odd(), -angle.cos_r, angle.sin_r) / select(angle.odd(), angle.sin_r, angle.cos_r);
  };
  // Beside a pole the error of r counts for more.
  return of_angle(x, 256, by_angle, [](float a) { return std::tan(a); });
}

inline Vec atan(Vec x) {
  const Vec size = abs(x);
  const Vec::Mask steep = size > Vec(1.0f);
  const Vec angle = vec::atan_below_one(select(steep, Vec(1.0f) / size, size));
  return copysign(select(steep, Vec(1.57079632679489662f) - angle, angle), x);
}

// The angle of the smaller to the larger side, mirrored into its octant.
inline Vec atan2(Vec y, Vec x) {
  const Vec height = abs(y), width = abs(x);
  const Vec::Mask steep = height > width;
  const Vec larger = select(steep, height, width), smaller = select(steep, width, height);
  // 0 / 0 counts as 0, infinity / infinity as 1.
  Vec ratio = select(larger == Vec(0.0f), Vec(0.0f), smaller / larger);
  ratio = select(smaller == Vec(std::numeric_limits<float>::infinity()), Vec(1.0f), ratio);
  Vec angle = vec::atan_below_one(ratio);
  angle = select(steep, Vec(1.57079632679489662f) - angle, angle);
  angle = select(Vec::Mask{x.bits() < 0}, Vec(3.14159265358979324f) - angle, angle);
  return select((x == x) & (y == y), copysign(angle, y), x + y);
}

// The other side of a right triangle with hypotenuse 1.
inline Vec other_side(Vec x) { return sqrt((Vec(1.0f) - x) * (Vec(1.0f) + x)); }
inline Vec asin(Vec x) { return atan2(x, other_side(x)); }
inline Vec acos(Vec x) { return atan2(other_side(x), x); }

namespace vec {

// From here on e^-x is below half a unit in the last place of e^x, which soon overflows: its root is squared.
inline constexpr float kLarge = 10;
RUSH_ALWAYS_INLINE Vec half_exp(Vec x) {
  const Vec root = exp(Vec(0.5f) * x);
  return Vec(0.5f) * root * root;
}

}  // namespace vec

// (t + t / (t + 1)) / 2 with t = e^x - 1.
inline Vec sinh(Vec x) {
  const Vec size = abs(x);
  const Vec t = expm1(select(size > Vec(vec::kLarge), Vec(vec::kLarge), size));
  const Vec small = Vec(0.5f) * (t + t / (t + Vec(1.0f)));
  return copysign(select(size > Vec(vec::kLarge), vec::half_exp(size), small), x);
}

inline Vec cosh(Vec x) {
  const Vec size = abs(x), e = vec::exp_normal(select(size > Vec(vec::kLarge), Vec(vec::kLarge), size));
  return select(size > Vec(vec::kLarge), vec::half_exp(size), Vec(0.5f) * (e + Vec(1.0f) / e));
}

// log((1 + x) / (1 - x)) / 2.
inline Vec atanh(Vec x) {
  const Vec size = abs(x);
  return copysign(Vec(0.5f) * log1p(Vec(2.0f) * size / (Vec(1.0f) - size)), x);
}

// (e^2x - 1) / (e^2x + 1).
RUSH_ALWAYS_INLINE Vec tanh(Vec x) {
  const Vec size = abs(x);
  const Vec t = expm1(Vec(2.0f) * select(size > Vec(10.0f), Vec(10.0f), size));
  return copysign(t / (t + Vec(2.0f)), x);
}

// x P(x^2) up to 1, beyond it 1 - exp(Q(x)) with Q = log erfc.
RUSH_ALWAYS_INLINE Vec erf(Vec x) {
  const Vec size = select(abs(x) > Vec(4.0f), Vec(4.0f), abs(x));
  const float p[] = {1.128379166f,    -0.3761262714f,   0.1128360018f,  -0.02685444464f,
                     0.005189535449f, -8.020842332e-4f, 7.889123246e-5f};
  const float q[] = {1.880362418e-4f, -1.129578407f,    -0.6332199257f,  -0.1084185444f,
                     0.02520823709f,  -0.004204554981f, 4.413350597e-4f, -2.168674416e-5f};
  const Vec inner = size * polynomial(size * size, p);
  const Vec outer = Vec(1.0f) - vec::exp_normal(polynomial(size, q));
  return copysign(select(size < Vec(1.0f), inner, outer), x);
}

// e^-x^2 (1 + Q((x - 2) / (x + 2))) / (1 + 2x) of positive numbers, and 2 less that below 0. x^2 is z^2, z being x cut
// to 12 bits, of which the square is exact, and (x - z) (x + z).
RUSH_ALWAYS_INLINE Vec erfc(Vec x) {
  const Vec size = select(abs(x) > Vec(10.5f), Vec(10.5f), abs(x));
  const float q[] = {0.276978394f,     -0.09276398545f, -0.166031465f,   0.1640554338f,    -0.05420383778f,
                     -0.008060170298f, 0.008629922674f, 0.001313282935f, -0.001227791686f, -3.993250564e-4f};
  const Vec ratio = Vec(1.0f) + polynomial((size - Vec(2.0f)) / (size + Vec(2.0f)), q);
  const Vec scaled = ratio / (Vec(1.0f) + Vec(2.0f) * size);
  const Vec z = Vec::from_bits(size.bits() & ~0xfff);
  const vec::ExpReduced reduced(-z * z);
  const Vec power = Vec(1.0f) + vec::expm1_near_zero(reduced.rest + (z - size) * (z + size));
  const Vec tail = vec::scale(power * scaled, reduced.n.integer);
  return select(x < Vec(0.0f), Vec(2.0f) - tail, tail);
}

// log(Gamma(x)) for positive x. Up to 4.5 it is f P(f), f being x less the nearest integer, for those near 2; Gamma(x +
// 1) = x Gamma(x) leads the others there. Beyond, Stirling's series (Abramowitz and Stegun, 6.1.41).
inline Vec lgamma(Vec x) {
  const Vec zero(0.0f), one(1.0f), two(2.0f), three(3.0f);
  const Vec nearest = nearbyint(x), f = x - nearest;
  const Vec below = (x - one) * select(nearest > three, x - two, one), above = x * select(nearest < one, x + one, one);
  const Vec factors = select(nearest > two, below, select(nearest < two, above, one));
  const Vec::Mask large = x >= Vec(4.5f);
  const Vec logarithm = log(select(large, x, factors));
  const float p[] = {0.4227843345f,   0.3224670188f,    -0.06735221881f, 0.0205816019f,   -0.007387427147f,
                     0.002879056813f, -0.001177842196f, 5.698214357e-4f, -2.698509079e-4f};
  const Vec small = f * polynomial(f, p) + select(nearest < two, -logarithm, logarithm);
  const Vec inverse = one / x;
  const float s[] = {0.08333333333f, -0.002777777778f, 7.936507937e-4f, -5.952380952e-4f};
  const Vec series = inverse * polynomial(inverse * inverse, s) + Vec(0.4189385332f);
  const Vec of_positive = select(large, (x - Vec(0.5f)) * (logarithm - one) + series, small);
  return or_by_lane(!(x <= zero), of_positive, x, [](float a) { return std::lgamma(a); });
}

// The bits of floats count up with their size.
inline Vec nextafter(Vec from, Vec to) {
  const Vec::Mask grows = (from < to) ^ (from < Vec(0.0f));
  // Less -1 where it grows, otherwise 1; unsigned, since a step back from -0, which is not taken, would overflow.
  const auto back = std::bit_cast<vec::UInts>(grows.lanes | 1);
  Vec next = Vec::from_bits(std::bit_cast<Vec::Ints>(std::bit_cast<vec::UInts>(from.bits()) - back));
  next = select(from == Vec(0.0f), copysign(Vec::from_bits(Vec::Ints{} + 1), to), next);
  next = select(from == to, to, next);
  return select((from == from) & (to == to), next, from + to);
}

namespace vec {

typedef float HalfFloats __attribute__((vector_size(kVectorBytes / 2)));
typedef double Doubles __attribute__((vector_size(kVectorBytes)));
typedef int64_t Longs __attribute__((vector_size(kVectorBytes)));

template <size_t N>
RUSH_ALWAYS_INLINE Doubles polynomial(Doubles x, const double (&c)[N]) {
  Doubles sum = c[N - 1] - Doubles{};
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// base^exponent = 2^(exponent log2(base)) in double, for normal positive bases. log2(2^k m) = k + log2(m), and log2(m)
// is a polynomial in s = (m - 1) / (m + 1), which is at most 0.172.
RUSH_ALWAYS_INLINE HalfFloats pow_of_half(HalfFloats base, HalfFloats exponent) {
  const Doubles x = __builtin_convertvector(base, Doubles);
  const Longs kSqrtHalf = 0x3fe6a09e00000000 - Longs{};
  const Longs shifted = std::bit_cast<Longs>(x) - kSqrtHalf;
  const Longs k = shifted >> 52;
  const Doubles m = std::bit_cast<Doubles>((shifted & 0x000fffffffffffff) + kSqrtHalf);
  const Doubles s = (m - 1) / (m + 1);
  const double c[] = {2.8853900817778496,  0.9617966941140544,  0.57707794216931108,
                      0.41220927119400919, 0.31990495745596419, 0.28291033403626303};
  const Doubles log2_x = __builtin_convertvector(k, Doubles) + s * polynomial(s * s, c);
  Doubles t = log2_x * __builtin_convertvector(exponent, Doubles);
  t = t > 200.0 ? 200.0 - Doubles{} : t;
  t = t < -200.0 ? -200.0 - Doubles{} : t;
  const Doubles shift = 6755399441055744.0 - Doubles{};  // 1.5 * 2^52, as in Rounded
  const Doubles rounded = t + shift;
  const Doubles r = t - (rounded - shift);
  const double e[] = {0.69314718055366582,   0.24022650923700022,    0.055504109291392261, 0.0096180563803113902,
                      0.0013333454124083778, 0.00015461563252460768, 1.5310198050756703e-5};
  const Longs n = std::bit_cast<Longs>(rounded) - std::bit_cast<Longs>(shift);
  const Doubles power = std::bit_cast<Doubles>((n + 1023) << 52);
  return __builtin_convertvector((1 + r * polynomial(r, e)) * power, HalfFloats);
}

// fn(a, b) of vectors, by a function of halves of them.
template <class Fn>
RUSH_ALWAYS_INLINE Vec by_halves(Vec a, Vec b, const Fn& fn) {
  struct Halves {
    HalfFloats low, high;
  };
  auto x = std::bit_cast<Halves>(a.lanes());
  const auto y = std::bit_cast<Halves>(b.lanes());
  x.low = fn(x.low, y.low);
  x.high = fn(x.high, y.high);
  return Vec(std::bit_cast<Vec::Floats>(x));
}

// What x leaves divided by y has the sign of x: `rest` may be of the next quotient.
RUSH_ALWAYS_INLINE Doubles fitted(Doubles rest, Doubles x, Doubles y) {
  const Doubles size = y < 0.0 ? -y : y;
  return x < 0.0 ? (rest > 0.0 ? rest - size : rest) : (rest < 0.0 ? rest + size : rest);
}

// What a leaves divided by b, for |a / b| < 2^29: in double, a - q b is exact, q being a / b to the nearest integer.
RUSH_ALWAYS_INLINE HalfFloats fmod_of_half(HalfFloats a, HalfFloats b) {
  const Doubles x = __builtin_convertvector(a, Doubles), y = __builtin_convertvector(b, Doubles);
  const Doubles shift = 6755399441055744.0 - Doubles{};  // 1.5 * 2^52, as in Rounded
  const Doubles quotient = (x / y + shift) - shift;
  return __builtin_convertvector(fitted(x - quotient * y, x, y), HalfFloats);
}

// The squares of floats neither overflow nor vanish in double.
RUSH_ALWAYS_INLINE HalfFloats hypot_of_half(HalfFloats a, HalfFloats b) {
  const Doubles x = __builtin_convertvector(a, Doubles), y = __builtin_convertvector(b, Doubles);
  Doubles length = x * x + y * y;
  for (size_t i = 0; i < sizeof length / sizeof(double); ++i) length[i] = std::sqrt(length[i]);
  return __builtin_convertvector(length, HalfFloats);
}

}  // namespace vec

inline Vec pow(Vec base, Vec exponent) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Vec size = abs(base), zero(0.0f), half = Vec(0.5f) * exponent;
  const Vec::Mask normal = (size >= Vec(std::numeric_limits<float>::min())) & (size <= Vec(kMax));
  const Vec::Mask ordinary = (normal | (size == zero)) & (abs(exponent) <= Vec(kMax));
  Vec power = vec::by_halves(size, exponent, vec::pow_of_half);
  const Vec of_zero = select(exponent < zero, Vec(std::numeric_limits<float>::infinity()), zero);
  power = select((size == zero) & (exponent != zero), of_zero, power);
  // Of negative numbers, only whole powers are real, and odd ones are negative.
  const Vec::Mask whole = floor(exponent) == exponent, odd = whole & (floor(half) != half);
  power = select(odd, copysign(power, base), power);
  power = select(whole | !(base < zero), power, Vec(std::numeric_limits<float>::quiet_NaN()));
  return or_by_lane(ordinary, power, base, exponent, [](float a, float b) { return std::pow(a, b); });
}

inline Vec hypot(Vec a, Vec b) {
  const Vec infinity(std::numeric_limits<float>::infinity());
  const Vec length = vec::by_halves(a, b, vec::hypot_of_half);
  return select((abs(a) == infinity) | (abs(b) == infinity), infinity, length);
}

inline Vec fmod(Vec a, Vec b) {
  const Vec::Mask ordinary = (abs(a / b) < Vec(536870912.0f)) & (abs(b) <= Vec(std::numeric_limits<float>::max()));
  const Vec rest = copysign(vec::by_halves(a, b, vec::fmod_of_half), a);
  return or_by_lane(ordinary, rest, a, b, [](float x, float y) { return functors::Fmod()(x, y); });
}

inline DoubleVec lgamma(DoubleVec x) {
  return x.each([](double lane) { return std::lgamma(lane); });
}
inline DoubleVec nextafter(DoubleVec from, DoubleVec to) {
  return lane_by_lane(from, to, [](double x, double y) { return std::nextafter(x, y); });
}
// As that of floats, with the product and the difference rounded once, for |a / b| < 2^51.
inline DoubleVec fmod(DoubleVec a, DoubleVec b) {
  const auto by_lane = [](double x, double y) { return functors::Fmod()(x, y); };
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  constexpr double kMax = std::numeric_limits<double>::max();
  const DoubleVec::Mask ordinary = (abs(a / b) < DoubleVec(2251799813685248.0)) & (abs(b) <= DoubleVec(kMax));
  const DoubleVec shift(6755399441055744.0);  // 1.5 * 2^52, as in Rounded
  const vec::Doubles quotient = ((a / b + shift) - shift).lanes(), x = a.lanes(), y = b.lanes();
  vec::Doubles rest{};
  for (int i = 0; i < DoubleVec::kSize; ++i) rest[i] = __builtin_fma(-quotient[i], y[i], x[i]);
  return or_by_lane(ordinary, copysign(DoubleVec(vec::fitted(rest, x, y)), a), a, b, by_lane);
#else
  return lane_by_lane(a, b, by_lane);
#endif
}

// ---- kernels ----

// out = f(in...) for n numbers, a register at a time; the rest is padded with ones.
template <class T, class F, size_t... I>
RUSH_ALWAYS_INLINE void vec_loop(const F& f, T* out, const T* const* in, int64_t n, std::index_sequence<I...>) {
  using V = VecOf<T>;
  int64_t i = 0;
  for (; i + V::kSize <= n; i += V::kSize) f(V::load(in[I] + i)...).store(out + i);
  if (i == n) return;
  T padded[sizeof...(I) + 1][V::kSize];
  for (auto& row : padded) std::fill_n(row, V::kSize, T(1));
  const size_t rest = static_cast<size_t>(n - i) * sizeof(T);
  (std::memcpy(padded[I], in[I] + i, rest), ...);
  f(V::load(padded[I])...).store(padded[sizeof...(I)]);
  std::memcpy(out + i, padded[sizeof...(I)], rest);
}

template <class T, class F, size_t arity>
void vec_block(const void* functor, void* out, const void* const* in, int64_t n) {
  vec_loop(*static_cast<const F*>(functor), static_cast<T*>(out), reinterpret_cast<const T* const*>(in), n,
           std::make_index_sequence<arity>());
}

// As block_of (see blocks.h), with vectors where the numbers are floats or doubles.
template <class T, class F>
constexpr BlockFn vec_block_of() {
  if constexpr (!std::is_floating_point_v<T>) {
    return block_of<T, F>();
  } else if constexpr (std::is_invocable_v<const F&, VecOf<T>>) {
    return vec_block<T, F, 1>;
  } else if constexpr (std::is_invocable_v<const F&, VecOf<T>, VecOf<T>>) {
    return vec_block<T, F, 2>;
  } else if constexpr (std::is_invocable_v<const F&, VecOf<T>, VecOf<T>, VecOf<T>>) {
    return vec_block<T, F, 3>;
  } else {
    return block_of<T, F>();
  }
}

}  // namespace rush::cpu
