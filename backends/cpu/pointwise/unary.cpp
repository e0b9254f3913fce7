// Signs, rounding, predicates: kernels of one operand that are cheap.
#include "backends/functors/unary.h"

#include <algorithm>

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// The angles of complex numbers, whose parts are taken apart for vectors of them.
void angle_block(const void* /*functor*/, void* out, const void* const* in, int64_t n) {
  constexpr int64_t kNumbers = 128;
  const auto* z = static_cast<const complex<float>*>(in[0]);
  const functors::Atan2 atan2;
  for (int64_t begin = 0; begin < n; begin += kNumbers) {
    const int64_t count = std::min(kNumbers, n - begin);
    float real[kNumbers], imag[kNumbers];
    for (int64_t i = 0; i < count; ++i) real[i] = z[begin + i].real();
    for (int64_t i = 0; i < count; ++i) imag[i] = z[begin + i].imag();
    const void* parts[] = {imag, real};
    vec_block<float, functors::Atan2, 2>(&atan2, static_cast<float*>(out) + begin, parts, count);
  }
}

void angle(TensorIterator& it) {
  if (it.common_dtype() == kComplex64) return run_blocks(it, angle_block, nullptr, kGrain / 4);
  map<functors::Angle, FloatTypes>(it);
}

}  // namespace

void register_unary() {
  set_kernels(functors::UnaryTable());
  kernels::angle.set(kCPU, angle);
}

}  // namespace rush::cpu
