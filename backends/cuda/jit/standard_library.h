// What the functors use of the standard library, for NVRTC, which has none: every standard header that they include is
// this file there (headers.cpp). The functions of <cmath> are CUDA's own, as they are for nvcc.
#ifndef RUSH_STANDARD_LIBRARY
#define RUSH_STANDARD_LIBRARY

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;  // as libcu++ has it, which complex numbers need
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;

namespace std {

using ::int16_t, ::int32_t, ::int64_t, ::int8_t, ::uint16_t, ::uint32_t, ::uint64_t, ::uint8_t;
using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));

// ---- <type_traits>, <concepts>

template <class T, T number>
struct integral_constant {
  static constexpr T value = number;
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;

template <bool condition, class A, class>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;

template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;

template <class T>
struct type_identity {
  using type = T;
};
template <class T>
using type_identity_t = typename type_identity<T>::type;

template <class T>
struct remove_cv : type_identity<T> {};
template <class T>
struct remove_cv<const T> : type_identity<T> {};
template <class T>
struct remove_cv<volatile T> : type_identity<T> {};
template <class T>
struct remove_cv<const volatile T> : type_identity<T> {};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;

template <class T>
struct remove_reference : type_identity<T> {};
template <class T>
struct remove_reference<T&> : type_identity<T> {};
template <class T>
struct remove_reference<T&&> : type_identity<T> {};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class A, class B>
struct is_same : integral_constant<bool, is_same_v<A, B>> {};

template <class T, class... Types>
inline constexpr bool rush_is_one_of = (is_same_v<T, Types> || ...);
template <class T>
inline constexpr bool is_floating_point_v = rush_is_one_of<remove_cv_t<T>, float, double>;
template <class T>
inline constexpr bool is_integral_v =
    rush_is_one_of<remove_cv_t<T>, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                   unsigned long, long long, unsigned long long>;
template <class T>
inline constexpr bool is_arithmetic_v = is_floating_point_v<T> || is_integral_v<T>;
template <class T>
inline constexpr bool is_signed_v = false;
template <class T>
requires is_arithmetic_v<T>
inline constexpr bool is_signed_v<T> = T(-1) < T(0);
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;
template <class T, class... Args>
inline constexpr bool is_constructible_v = __is_constructible(T, Args...);

template <class A, class B>
concept same_as = is_same_v<A, B>;
template <class T>
concept integral = is_integral_v<T>;
template <class T>
concept floating_point = is_floating_point_v<T>;

constexpr bool is_constant_evaluated() noexcept { return __builtin_is_constant_evaluated(); }

// ---- <bit>, <algorithm>, <optional>

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}

template <class T>
class optional {  // of numbers
 public:
  constexpr optional() = default;
  constexpr optional(T value) : value_(value), given_(true) {}
  constexpr bool has_value() const { return given_; }
  constexpr T value_or(T other) const { return given_ ? value_ : other; }

 private:
  T value_{};
  bool given_ = false;
};

// ---- what the table of dtypes declares, and no kernel runs

template <class>
struct hash;
class string {
 public:
  string& operator+=(const char* text);
};
class string_view {
 public:
  constexpr string_view(const char*) {}
};

// ---- <limits>

enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };
enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest };

template <class T>
class numeric_limits {  // of integers
 public:
  static constexpr bool is_specialized = is_integral_v<T>, is_signed = is_signed_v<T>, is_integer = is_specialized;
  static constexpr bool has_infinity = false, has_quiet_NaN = false;
  static constexpr int digits = is_same_v<T, bool> ? 1 : 8 * sizeof(T) - is_signed;
  static constexpr T max() noexcept {
    return is_same_v<T, bool> ? T(1) : static_cast<T>(~0ull >> (8 * sizeof(~0ull) - (is_specialized ? digits : 1)));
  }
  static constexpr T min() noexcept { return static_cast<T>(is_signed ? -max() - 1 : 0); }
  static constexpr T lowest() noexcept { return min(); }
};
template <floating_point T>
class numeric_limits<T> {
  static constexpr bool kSingle = is_same_v<T, float>;

 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = kSingle ? 24 : 53;
  static constexpr int max_exponent = kSingle ? 128 : 1024, min_exponent = kSingle ? -125 : -1021;
  static constexpr T max() noexcept { return T(kSingle ? 0x1.fffffep127 : 0x1.fffffffffffffp1023); }
  static constexpr T lowest() noexcept { return -max(); }
  static constexpr T min() noexcept { return T(kSingle ? 0x1p-126 : 0x1p-1022); }
  static constexpr T epsilon() noexcept { return T(kSingle ? 0x1p-23 : 0x1p-52); }
  static constexpr T denorm_min() noexcept { return T(kSingle ? 0x1p-149 : 0x1p-1074); }
  static constexpr T infinity() noexcept { return T(__builtin_bit_cast(double, 0x7ff0000000000000)); }
  static constexpr T quiet_NaN() noexcept { return T(__builtin_bit_cast(double, 0x7ff8000000000000)); }
};

// ---- <cmath>

// clang-format off
#define RUSH_FUNCTIONS_OF_ONE(_) \
  _(acos) _(acosh) _(asin) _(asinh) _(atan) _(atanh) _(cbrt) _(ceil) _(cos) _(cosh) _(erf) _(erfc) _(exp) _(exp2) \
  _(expm1) _(floor) _(lgamma) _(log) _(log10) _(log1p) _(log2) _(nearbyint) _(rint) _(round) _(sin) _(sinh) \
  _(sqrt) _(tan) _(tanh) _(tgamma) _(trunc)
#define RUSH_FUNCTIONS_OF_TWO(_) \
  _(atan2) _(copysign) _(fmax) _(fmin) _(fmod) _(hypot) _(nextafter) _(pow)
// clang-format on

#define RUSH_DEFINE(name)                                        \
  inline __device__ float name(float x) { return ::name##f(x); } \
  inline __device__ double name(double x) { return ::name(x); }  \
  template <integral I>                                          \
  inline __device__ double name(I x) {                           \
    return ::name(static_cast<double>(x));                       \
  }
RUSH_FUNCTIONS_OF_ONE(RUSH_DEFINE)
#undef RUSH_DEFINE
#define RUSH_DEFINE(name)                                                    \
  inline __device__ float name(float x, float y) { return ::name##f(x, y); } \
  inline __device__ double name(double x, double y) { return ::name(x, y); }
RUSH_FUNCTIONS_OF_TWO(RUSH_DEFINE)
#undef RUSH_DEFINE

inline __device__ float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
inline __device__ double fma(double x, double y, double z) { return ::fma(x, y, z); }
inline __device__ float abs(float x) { return ::fabsf(x); }
inline __device__ double abs(double x) { return ::fabs(x); }
inline __device__ int abs(int x) { return x < 0 ? -x : x; }
inline __device__ long abs(long x) { return x < 0 ? -x : x; }
inline __device__ long long abs(long long x) { return x < 0 ? -x : x; }
template <class T>
inline __device__ bool isinf(T x) {
  return abs(x) == numeric_limits<T>::infinity();
}
template <class T>
inline __device__ bool isnan(T x) {
  return x != x;
}
template <class T>
inline __device__ bool isfinite(T x) {
  return abs(x) < numeric_limits<T>::infinity();
}
inline __device__ bool signbit(float x) { return __float_as_int(x) < 0; }
inline __device__ bool signbit(double x) { return __double2hiint(x) < 0; }

}  // namespace std

#endif
