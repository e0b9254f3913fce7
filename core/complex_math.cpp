#include "core/complex_math.h"

#include <cmath>
#include <complex>

namespace rush::detail::libm {

namespace {
template <class T>
std::complex<T> to_std(const complex<T>& z) {
  return {z.real(), z.imag()};
}

template <class T>
complex<T> from_std(const std::complex<T>& z) {
  return {z.real(), z.imag()};
}
}  // namespace

#define RUSH_DEFINE_FUNCTION(name)                                                        \
  complex<float> name(const complex<float>& z) { return from_std(std::name(to_std(z))); } \
  complex<double> name(const complex<double>& z) { return from_std(std::name(to_std(z))); }
RUSH_FORALL_COMPLEX_FUNCTIONS(RUSH_DEFINE_FUNCTION)
#undef RUSH_DEFINE_FUNCTION

complex<float> pow(const complex<float>& base, const complex<float>& exponent) {
  return from_std(std::pow(to_std(base), to_std(exponent)));
}

complex<double> pow(const complex<double>& base, const complex<double>& exponent) {
  return from_std(std::pow(to_std(base), to_std(exponent)));
}

}  // namespace rush::detail::libm
