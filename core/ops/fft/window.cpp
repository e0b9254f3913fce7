#include "core/ops/fft/window.h"

#include <numbers>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/pointwise/special.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

using std::numbers::pi;

// weight(k/N) for all k, in float64, rounded once.
template <class Weight>
Tensor window_of(const char* op, int64_t length, bool periodic, MaybeDtype dtype, MaybeDevice device,
                 const Weight& weight) {
  const ScalarType type = dtype.value_or(get_default_dtype());
  RUSH_CHECK_TYPE(is_floating_point(type), op, ": expected a floating-point dtype, got ", type);
  RUSH_CHECK_VALUE(length >= 0, op, ": the length must be non-negative, got ", length);
  const Tensor k = arange(length, TensorOptions(kFloat64).device(device.value_or(get_default_device())));
  return (length == 1 ? k + 1 : weight(k / (length - (periodic ? 0 : 1)))).to(type);
}

#define RUSH_WINDOW_TAIL MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device, MaybePin /*pin_memory*/

Tensor hamming_of(const char* op, int64_t length, bool periodic, double alpha, double beta, MaybeDtype dtype,
                  MaybeDevice device) {
  return window_of(op, length, periodic, dtype, device,
                   [&](const Tensor& x) { return alpha - beta * (x * (2 * pi)).cos(); });
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
                   [](const Tensor& x) { return 0.42 - 0.5 * (x * (2 * pi)).cos() + 0.08 * (x * (4 * pi)).cos(); });
}

Tensor bartlett_window(int64_t length, bool periodic, RUSH_WINDOW_TAIL) {
  return window_of("bartlett_window", length, periodic, dtype, device,
                   [](const Tensor& x) { return 1 - (2 * x - 1).abs(); });
}

Tensor kaiser_window_beta(int64_t length, bool periodic, double beta, RUSH_WINDOW_TAIL) {
  return window_of("kaiser_window", length, periodic, dtype, device, [&](const Tensor& x) {
    const Tensor middle = scalar_tensor(beta, x.options());
    return i0(beta * (1 - (2 * x - 1).square()).sqrt()) / i0(middle);
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
