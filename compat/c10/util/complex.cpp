#include "c10/util/complex.h"

#include "core/complex_math.h"

namespace std {
#define RUSH_FUNCTION_OF_COMPLEX(name)                                               \
  rush::complex<float> name(const rush::complex<float>& z) { return rush::name(z); } \
  rush::complex<double> name(const rush::complex<double>& z) { return rush::name(z); }
RUSH_FORALL_FUNCTIONS_OF_COMPLEX(RUSH_FUNCTION_OF_COMPLEX)
rush::complex<float> pow(const rush::complex<float>& base, const rush::complex<float>& exponent) {
  return rush::pow(base, exponent);
}
rush::complex<double> pow(const rush::complex<double>& base, const rush::complex<double>& exponent) {
  return rush::pow(base, exponent);
}
}  // namespace std
