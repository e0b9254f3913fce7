#include "ATen/operators/random_operators.h"

#include <cmath>
#include <mutex>

#include "core/device/mt19937.h"

namespace rush {
inline namespace aten {

namespace {
// Uniform numbers in [0, 1) from a Mersenne Twister: the one given, the CPU's default, or where that is of another
// kind, one with a seed that is drawn from it.
class Uniform {
 public:
  explicit Uniform(const OptionalGenerator& generator)
      : source_(generator && generator->defined() ? *generator : default_generator(kCPU)) {
    if (!source_.mt19937()) {
      const auto seed = empty({1}, TensorOptions(kInt64).device(kCPU)).random_(source_).item<int64_t>();
      source_ = make_generator<Mt19937GeneratorImpl>(static_cast<uint64_t>(seed));
    }
    lock_ = std::unique_lock(source_.mutex());
  }
  double operator()() {
    constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
    return static_cast<double>(source_.mt19937()->random64() & kMask) * 0x1p-53;
  }

 private:
  Generator source_;
  std::unique_lock<std::mutex> lock_;
};

// Hoermann, "The transformed rejection method for generating Poisson random variables" (1993); below 10, the number of
// uniform numbers whose product stays above e^-rate.
double poisson_number(double rate, Uniform& uniform) {
  RUSH_CHECK_VALUE(rate >= 0, "poisson: the rate must not be negative, got ", rate);
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double count = 0;
    for (double product = uniform(); product > limit; product *= uniform()) count += 1;
    return count;
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = uniform() - 0.5, v = uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= box) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1)) {
      return k;
    }
  }
}

// What Stirling's formula for log k! leaves out.
double stirling_tail(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                               0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                               0.00925546218271273, 0.00833056343336287};
  if (k < 10) return kFirst[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
// For p up to 1/2: Hoermann, "The generation of binomial random variates" (1993); below 10 expected successes, the
// distances from one success to the next, which are geometric.
double binomial_number_of_small(double n, double p, Uniform& uniform) {
  if (n * p < 10) {
    const double log_failure = std::log1p(-p);
    double trials = 0, successes = 0;
    while ((trials += std::ceil(std::log(uniform()) / log_failure)) <= n) successes += 1;
    return successes;
  }
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, box = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((n + 1) * p);
  while (true) {
    const double u = uniform() - 0.5, v = uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= box) return k;
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) +
                         (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(n - m) -
                         stirling_tail(k) - stirling_tail(n - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}
double binomial_number(double n, double p, Uniform& uniform) {
  RUSH_CHECK_VALUE(std::isfinite(n), "binomial: the number of trials must be finite, got ", n);
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p <= 0.5) return binomial_number_of_small(n, p, uniform);
  return p > 0.5 ? n - binomial_number_of_small(n, 1 - p, uniform) : std::numeric_limits<double>::quiet_NaN();
}
}  // namespace

Tensor poisson(const Tensor& self, const OptionalGenerator& generator) {
  RUSH_CHECK_TYPE(self.is_floating_point(), "poisson: needs floating point, got ", self.scalar_type());
  const Tensor out = self.detach().to(kCPU, kFloat64).clone(MemoryFormat::Contiguous);
  Uniform uniform(generator);
  double* numbers = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) numbers[i] = poisson_number(numbers[i], uniform);
  return out.to(self.device(), self.scalar_type());
}
Tensor binomial(const Tensor& count, const Tensor& prob, const OptionalGenerator& generator) {
  RUSH_CHECK_TYPE(count.is_floating_point() && prob.is_floating_point(), "binomial: needs floating point, got ",
                  count.scalar_type(), " and ", prob.scalar_type());
  const std::vector<Tensor> both = broadcast_tensors({count.detach(), prob.detach()});
  const Tensor out = both[0].to(kCPU, kFloat64).clone(MemoryFormat::Contiguous);
  const Tensor p = both[1].to(kCPU, kFloat64).contiguous();
  Uniform uniform(generator);
  double* numbers = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    numbers[i] = binomial_number(numbers[i], p.data_ptr<double>()[i], uniform);
  }
  return out.to(count.device(), count.scalar_type());
}
Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                        const OptionalGenerator& generator) {
  const double low = lower.to<double>(), high = upper.to<double>();
  if (!training) return leaky_relu(self, (low + high) / 2);
  const Tensor slopes = self.detach().to(kCPU, kFloat64).clone(MemoryFormat::Contiguous);
  {
    Uniform uniform(generator);
    double* numbers = slopes.data_ptr<double>();
    for (int64_t i = 0; i < slopes.numel(); ++i)
      numbers[i] = numbers[i] <= 0 ? std::fma(uniform(), high - low, low) : 1;
  }
  noise.copy_(slopes);
  return self.mul(noise.clone());
}
}  // namespace aten
}  // namespace rush
