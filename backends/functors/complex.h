// Complex numbers from two real ones.
#pragma once
#include "backends/functors/table.h"
#include "core/complex_math.h"
#include "core/ops/pointwise/complex.h"

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

using ComplexTable = Table<Row<kernels::complex, MakeComplex, TypeList<float, double>, kSlow>,
                           Row<kernels::polar, MakePolar, TypeList<float, double>, kSlow>>;

}  // namespace rush::functors
