#include "core/ops/fft/window.h"

#include <cmath>
#include <numbers>

#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

using std::numbers::pi;

// weight(k/N) for each k. Windows are short: the host computes them, in float64, and they are rounded once.
template <class Weight>
Tensor window_of(const char* op, int64_t length, bool periodic, MaybeDtype dtype, MaybeDevice device,
                 const Weight& weight) {
  const ScalarType type = dtype.value_or(get_default_dtype());
  RUSH_CHECK_TYPE(is_floating_point(type), op, ": expected a floating-point dtype, got ", type);
  RUSH_CHECK_VALUE(length >= 0, op, ": the length must be non-negative, got ", length);
  const Tensor host = detail::empty_contiguous(length, kFloat64, kCPU);
  double* weights = host.data_ptr<double>();
  const double points = static_cast<double>(length) - (periodic ? 0 : 1);
  for (int64_t k = 0; k < length; ++k) weights[k] = length == 1 ? 1 : weight(static_cast<double>(k) / points);
  return host.to(device.value_or(get_default_device()), type);
}

#define RUSH_WINDOW_TAIL MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device, MaybePin /*pin_memory*/

Tensor hamming_of(const char* op, int64_t length, bool periodic, double alpha, double beta, MaybeDtype dtype,
                  MaybeDevice device) {
  return window_of(op, length, periodic, dtype, device, [&](double x) { return alpha - beta * std::cos(2 * pi * x); });
}

Tensor hann_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return hamming_of("hann_window", length, periodic, 0.5, 0.5, dtype, device);
}

Tensor hamming_window_alpha_beta(int64_t length, bool periodic, double alpha, double beta, RUSH_WINDOW_TAIL) {
  return hamming_of("hamming_window", length, periodic, alpha, beta, dtype, device);
}

Tensor hamming_window_alpha(int64_t length, bool periodic, double alpha, RUSH_WINDOW_TAIL) {
  return hamming_of("hamming_window", length, periodic, alpha, 0.46, dtype, device);
}

Tensor hamming_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return hamming_of("hamming_window", length, periodic, 0.54, 0.46, dtype, device);
}

Tensor blackman_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return window_of("blackman_window", length, periodic, dtype, device,
                   [](double x) { return 0.42 - 0.5 * std::cos(2 * pi * x) + 0.08 * std::cos(4 * pi * x); });
}

Tensor bartlett_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return window_of("bartlett_window", length, periodic, dtype, device,
                   [](double x) { return 1 - std::abs(2 * x - 1); });
}

// I0(x) = sum over k of (x^2/4)^k / (k!)^2 (Abramowitz and Stegun 9.6.12), whose terms are all positive.
double bessel_i0(double x) {
  const double quarter = x * x / 4;
  double term = 1, sum = 1;
  for (double k = 1; term > sum * 1e-17; ++k) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}

Tensor kaiser_window_beta(int64_t length, bool periodic, double beta, RUSH_WINDOW_TAIL) {
  const double middle = bessel_i0(beta);
  return window_of("kaiser_window", length, periodic, dtype, device, [&](double x) {
    const double side = 2 * x - 1;
    return bessel_i0(beta * std::sqrt(1 - side * side)) / middle;
  });
}

Tensor kaiser_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return native::kaiser_window_beta(length, periodic, 12, dtype, std::nullopt, device, std::nullopt);
}

// Without the argument, periodic.
template <auto window>
Tensor periodic_window(int64_t length, RUSH_WINDOW_TAIL) {
  return window(length, true, dtype, std::nullopt, device, std::nullopt);
}

#undef RUSH_WINDOW_TAIL

}  // namespace
}  // namespace native

#define RUSH_FORALL_WINDOWS(X) X(hann_window) X(hamming_window) X(blackman_window) X(bartlett_window) X(kaiser_window)

void register_window_ops(Registry& r) {
#define RUSH_REGISTER_WINDOW(name)                            \
  r.native(ops::name, native::periodic_window<native::name>); \
  r.native(ops::name##_periodic, native::name);
  RUSH_FORALL_WINDOWS(RUSH_REGISTER_WINDOW)
#undef RUSH_REGISTER_WINDOW
  r.native(ops::hamming_window_periodic_alpha, native::hamming_window_alpha);
  r.native(ops::hamming_window_periodic_alpha_beta, native::hamming_window_alpha_beta);
  r.native(ops::kaiser_window_beta, native::kaiser_window_beta);
}

using detail::call_factory;
#define RUSH_DEFINE_WINDOW(name)                                                               \
  Tensor name(int64_t window_length, const TensorOptions& options) {                           \
    return call_factory(ops::name, options, window_length);                                    \
  }                                                                                            \
  Tensor name(int64_t window_length, TruthValue auto periodic, const TensorOptions& options) { \
    return call_factory(ops::name##_periodic, options, window_length, periodic);               \
  }                                                                                            \
  template Tensor name(int64_t, bool, const TensorOptions&);
RUSH_FORALL_WINDOWS(RUSH_DEFINE_WINDOW)
#undef RUSH_DEFINE_WINDOW
#undef RUSH_FORALL_WINDOWS

Tensor hamming_window(int64_t window_length, TruthValue auto periodic, double alpha, const TensorOptions& options) {
  return call_factory(ops::hamming_window_periodic_alpha, options, window_length, periodic, alpha);
}
template Tensor hamming_window(int64_t, bool, double, const TensorOptions&);
Tensor hamming_window(int64_t window_length, TruthValue auto periodic, double alpha, double beta,
                      const TensorOptions& options) {
  return call_factory(ops::hamming_window_periodic_alpha_beta, options, window_length, periodic, alpha, beta);
}
template Tensor hamming_window(int64_t, bool, double, double, const TensorOptions&);
Tensor kaiser_window(int64_t window_length, TruthValue auto periodic, double beta, const TensorOptions& options) {
  return call_factory(ops::kaiser_window_beta, options, window_length, periodic, beta);
}
template Tensor kaiser_window(int64_t, bool, double, const TensorOptions&);

}  // namespace rush
