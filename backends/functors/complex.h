// Complex numbers from two real ones.
#pragma once
#include "core/complex_math.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/complex.h"
#endif

namespace rush::functors {

struct MakeComplex {
  template <class T>
  RUSH_HD complex<T> operator()(T real, T imag) const {
    return {real, imag};
  }
};
struct MakePolar {
  template <class T>
  RUSH_HD complex<T> operator()(T radius, T angle) const {
    return polar(radius, angle);
  }
};

#ifndef __CUDACC_RTC__
using ComplexTable = Table<Row<kernels::complex, MakeComplex, TypeList<float, double>, kSlow>,
                           Row<kernels::polar, MakePolar, TypeList<float, double>, kSlow>>;
#endif

}  // namespace rush::functors
