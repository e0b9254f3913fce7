// The CPU's kernels of Note [libtorch's random numbers].
#include "core/device/mt19937.h"

#include <cmath>
#include <numeric>

#include "backends/cpu/loops.h"
#include "backends/cpu/random/random.h"
#include "backends/cpu/register.h"
#include "core/ops/random/random.h"

namespace rush::cpu {

namespace {

using Twister = Mt19937GeneratorImpl;
constexpr double kPi = 3.14159265358979323846;

template <class T>
using math_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// One word, or two for double: as many of its lower bits as T has digits, over 2^digits. In [0, 1).
template <class T>
math_t<T> unit(Twister* twister) {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  constexpr uint64_t kMask = (uint64_t{1} << kDigits) - 1;
  const uint64_t word = std::is_same_v<T, double> ? twister->random64() : twister->random();
  return static_cast<math_t<T>>(word & kMask) / static_cast<math_t<T>>(uint64_t{1} << kDigits);
}

// out[i] = draw(), element after element.
template <class T, class Draw>
void fill(const Tensor& out, Twister* twister, const Draw& draw) {
  const std::lock_guard<std::mutex> lock(twister->mutex_);
  T* to = out.data_ptr<T>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<T>(draw());
}

struct UniformLoop {
  template <class T>
  static void run(const Tensor& out, double from, double to, Twister* twister) {
    using M = math_t<T>;
    const M low = static_cast<M>(static_cast<T>(from));
    const M width = static_cast<M>(static_cast<T>(static_cast<M>(static_cast<T>(to)) - low));
    fill<T>(out, twister, [&] { return std::fma(unit<T>(twister), width, low); });
  }
};

// ---- normal numbers, by Box and Muller

// One of two; the other is the next one.
double standard_normal(Twister* twister) {
  if (twister->next_normal) return *std::exchange(twister->next_normal, std::nullopt);
  const double u = unit<double>(twister), v = unit<double>(twister);
  const double radius = std::sqrt(-2 * std::log1p(-v)), angle = 2 * kPi * u;
  twister->next_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

double normal_number(double mean, double std, Twister* twister) {
  return std::fma(standard_normal(twister), std, mean);
}

// Logarithm, sine and cosine in single precision, rounded as libtorch's vectors of eight floats round: polynomials of
// Moshier's Cephes library (logf.c, sinf.c, cosf.c). Each std::fma stands where the compiler of PyTorch's build makes
// one.
float cephes_log(float x) {
  x = std::max(x, std::numeric_limits<float>::min());
  const auto bits = std::bit_cast<uint32_t>(x);
  auto exponent = static_cast<float>(static_cast<int>(bits >> 23) - 126);
  x = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  if (x < 0.707106781186547524f) {
    exponent -= 1;
    x = x - 1 + x;
  } else {
    x = x - 1;
  }
  constexpr float kCoefficients[] = {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                                     -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  float y = 7.0376836292e-2f;
  for (const float c : kCoefficients) y = std::fma(y, x, c);
  const float square = x * x;
  y = std::fma(y * x, square, exponent * -2.12194440e-4f);
  y = std::fma(square, -0.5f, y);
  return std::fma(exponent, 0.693359375f, x + y);
}

struct SineCosine {
  float sine, cosine;
};
SineCosine cephes_sincos(float x) {  // x >= 0
  const int octant = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
  const auto y = static_cast<float>(octant);
  // x - octant * pi / 4, pi / 4 in three parts.
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float square = x * x;
  float c = std::fma(std::fma(2.443315711809948e-5f, square, -1.388731625493765e-3f), square, 4.166664568298827e-2f);
  c = std::fma(c * square, square, -(square * 0.5f)) + 1;
  float s = std::fma(std::fma(-1.9515295891e-4f, square, 8.3321608736e-3f), square, -1.6666654611e-1f);
  s = std::fma(s * square, x, x);
  if (octant & 2) std::swap(s, c);
  return {octant & 4 ? -s : s, (octant + 2) & 4 ? -c : c};
}

// 16 numbers in [0, 1) become 16 normal ones: number i < 8 is paired with number i + 8. Every step is rounded to T.
template <class T>
void normal_of_16(T* data, double mean, double std) {
  using M = math_t<T>;
  const auto rounded = [](M x) { return static_cast<M>(static_cast<T>(x)); };
  const M m = rounded(static_cast<M>(mean)), s = rounded(static_cast<M>(std));
  for (int i = 0; i < 8; ++i) {
    const M u = rounded(1 - static_cast<M>(data[i]));
    const auto v = static_cast<M>(data[i + 8]);
    M radius, sine, cosine;
    if constexpr (std::is_same_v<T, float>) {
      radius = std::sqrt(-2 * cephes_log(u));
      const SineCosine both = cephes_sincos(static_cast<float>(2 * kPi) * v);
      sine = both.sine, cosine = both.cosine;
    } else {
      radius = rounded(std::sqrt(rounded(-2 * rounded(std::log(u)))));
      const M angle = rounded(static_cast<M>(2 * kPi * static_cast<double>(v)));
      sine = rounded(std::sin(angle)), cosine = rounded(std::cos(angle));
    }
    const auto scaled = [&](M normal) {
      return static_cast<T>(is_reduced_float_v<T> ? rounded(normal * s) + m : std::fma(normal, s, m));
    };
    data[i] = scaled(rounded(radius * cosine));
    data[i + 8] = scaled(rounded(radius * sine));
  }
}

struct NormalLoop {
  template <class T>
  static void run(const Tensor& out, double mean, double std, Twister* twister) {
    const int64_t n = out.numel();
    if (n < 16 || !out.is_contiguous()) {
      return fill<T>(out, twister, [&] { return normal_number(mean, std, twister); });
    }
    const auto uniform = [&] { return unit<T>(twister); };
    fill<T>(out, twister, uniform);
    T* to = out.data_ptr<T>();
    for (int64_t i = 0; i + 16 <= n; i += 16) normal_of_16(to + i, mean, std);
    if (n % 16 == 0) return;
    // The last 16 are drawn again, those among them that were finished too.
    const Tensor last = detail::make_view(out, {16}, {1}, out.storage_offset() + n - 16);
    fill<T>(last, twister, uniform);
    normal_of_16(to + n - 16, mean, std);
  }
};

// ---- distributions that are drawn in double precision and then rounded

template <auto& draw>
struct TwoParameterLoop {
  template <class T>
  static void run(const Tensor& out, double first, double second, Twister* twister) {
    fill<T>(out, twister, [&] { return draw(first, second, twister); });
  }
};
template <auto& draw>
struct OneParameterLoop {
  template <class T>
  static void run(const Tensor& out, double parameter, Twister* twister) {
    fill<T>(out, twister, [&] { return draw(parameter, twister); });
  }
};

double log_normal_number(double mean, double std, Twister* twister) {
  return std::exp(normal_number(mean, std, twister));
}
double cauchy_number(double median, double sigma, Twister* twister) {
  return std::fma(sigma, std::tan(kPi * (unit<double>(twister) - 0.5)), median);
}
double exponential_number(double lambda, Twister* twister) { return -1 / lambda * std::log1p(-unit<double>(twister)); }
double geometric_number(double p, Twister* twister) {
  return std::ceil(std::log(unit<double>(twister)) / std::log1p(-p));
}
bool bernoulli_number(double p, Twister* twister) { return unit<double>(twister) < p; }

struct BernoulliTensorLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& p, Twister* twister) {
    check_probabilities(p);
    const bool wide = p.scalar_type() == kFloat64;
    int64_t i = 0;
    fill<T>(out, twister, [&] {
      const bool drawn =
          wide ? unit<double>(twister) < p.data_ptr<double>()[i] : unit<float>(twister) < p.data_ptr<float>()[i];
      ++i;
      return drawn;
    });
  }
};

struct RandomLoop {
  template <class T>
  static void run(const Tensor& out, int64_t from, uint64_t range, Twister* twister) {
    // random_() of int32 has a range of 2^31 and takes one word; else ranges from 2^28 on take two.
    const bool two_words = (range == 0 || range >= uint64_t{1} << 28) &&
                           !(std::is_same_v<T, int32_t> && from == 0 && range == uint64_t{1} << 31);
    fill<T>(out, twister, [&] {
      const uint64_t word = two_words ? twister->random64() : twister->random();
      return static_cast<int64_t>(range == 0 ? word : word % range + static_cast<uint64_t>(from));
    });
  }
};

void randperm(const Tensor& out, Twister* twister) {  // Fisher and Yates
  const std::lock_guard<std::mutex> lock(twister->mutex_);
  const int64_t n = out.numel();
  auto* to = out.data_ptr<int64_t>();
  std::iota(to, to + n, 0);
  const bool two_words = n >= int64_t{std::numeric_limits<uint32_t>::max()} / 20;
  for (int64_t i = 0; i + 1 < n; ++i) {
    std::swap(to[i], to[i + static_cast<int64_t>((two_words ? twister->random64() : twister->random()) %
                                                 static_cast<uint64_t>(n - i))]);
  }
}

struct MultinomialLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& weights, bool replacement, Twister* twister) {
    const int64_t n = weights.size(1), samples = out.size(1);
    const std::lock_guard<std::mutex> lock(twister->mutex_);
    const auto weights_of = [&](int64_t row) { return weights.data_ptr<T>() + row * n; };
    for (int64_t row = 0; row < weights.size(0); ++row) check_weights(weights_of(row), n, replacement ? 1 : samples);
    for (int64_t row = 0; row < weights.size(0); ++row) {
      const T* weight = weights_of(row);
      int64_t* to = out.data_ptr<int64_t>() + row * samples;
      if (replacement && samples > 1) {
        draw_again(weight, n, samples, to, twister);
      } else {
        draw_once(weight, n, samples, to, twister);
      }
    }
  }

 private:
  template <class T>
  static void draw_again(const T* weight, int64_t n, int64_t samples, int64_t* to, Twister* twister) {
    std::vector<T> sums(static_cast<size_t>(n));
    std::partial_sum(weight, weight + n, sums.begin());
    for (T& sum : sums) sum /= sums.back();
    for (int64_t j = 0; j < samples; ++j) {
      to[j] = std::lower_bound(sums.begin(), sums.end() - 1, unit<double>(twister)) - sums.begin();
    }
  }

  // The largest of weight / exponential number: Efraimidis and Spirakis, "Weighted random sampling with a reservoir".
  template <class T>
  static void draw_once(const T* weight, int64_t n, int64_t samples, int64_t* to, Twister* twister) {
    std::vector<T> score(weight, weight + n);
    for (T& s : score) s /= static_cast<T>(exponential_number(1, twister));
    largest_scores(score, samples, to);
  }
};

template <class Loop, class Types, auto& kernel, class... Args>
void run(const Tensor& out, Args... args) {
  pick<Loop>(Types(), out.scalar_type(), kernel.name())(out, args...);
}

void multinomial(const Tensor& out, const Tensor& weights, bool replacement, Twister* twister) {
  pick<MultinomialLoop>(TypeList<float, double>(), weights.scalar_type(), "multinomial")(out, weights, replacement,
                                                                                         twister);
}

}  // namespace

void register_mt19937() {
  namespace k = kernels::mt19937;
  k::uniform.set(kCPU, run<UniformLoop, RealFloatTypes, k::uniform>);
  k::normal.set(kCPU, run<NormalLoop, RealFloatTypes, k::normal>);
  k::log_normal.set(kCPU, run<TwoParameterLoop<log_normal_number>, RealFloatTypes, k::log_normal>);
  k::cauchy.set(kCPU, run<TwoParameterLoop<cauchy_number>, RealFloatTypes, k::cauchy>);
  k::exponential.set(kCPU, run<OneParameterLoop<exponential_number>, RealFloatTypes, k::exponential>);
  k::geometric.set(kCPU, run<OneParameterLoop<geometric_number>, RealTypes, k::geometric>);
  k::bernoulli.set(kCPU, run<OneParameterLoop<bernoulli_number>, RealAndBoolTypes, k::bernoulli>);
  k::bernoulli_tensor.set(kCPU, run<BernoulliTensorLoop, RealAndBoolTypes, k::bernoulli_tensor>);
  k::random.set(kCPU, run<RandomLoop, RealAndBoolTypes, k::random>);
  k::randperm.set(kCPU, randperm);
  k::multinomial.set(kCPU, multinomial);
}

}  // namespace rush::cpu
