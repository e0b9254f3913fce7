// Complex numbers from two real ones, and sums of exponentials, which complex numbers have too.
#include "core/ops/pointwise/complex.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/binary.h"
#include "backends/functors/complex.h"
#include "core/ops/pointwise/power.h"

namespace rush::cuda {

namespace {

template <class F>
struct MakeComplexLoop {
  template <class T>
  static void run(TensorIterator& it) {
    elementwise<complex<T>, T, T>(it, F{});
  }
};
template <class F>
void make_complex(TensorIterator& it) {
  pick<MakeComplexLoop<F>>(TypeList<float, double>(), it.common_dtype(), it.op())(it);
}

}  // namespace

void register_complex_binary() {
  kernels::complex.set(kCUDA, make_complex<functors::MakeComplex>);
  kernels::polar.set(kCUDA, make_complex<functors::MakePolar>);
  kernels::logaddexp.set(kCUDA, map_slow<functors::LogAddExp, FloatTypes>);
}

}  // namespace rush::cuda
