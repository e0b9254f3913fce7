// Complex numbers from two real ones.
#pragma once
#include "backends/functors/select.h"
#include "core/complex_math.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/complex.h"
#endif

namespace rush::functors {

RUSH_FUNCTOR(MakeComplex, complex<T>, T real, T imag) { return {real, imag}; }
RUSH_FUNCTOR(MakePolar, complex<T>, T radius, T angle) { return polar(radius, angle); }

#ifndef __CUDACC_RTC__
using ComplexTable = Table<Row<kernels::complex, MakeComplex, TypeList<float, double>, kSlow>,
                           Row<kernels::polar, MakePolar, TypeList<float, double>, kSlow>>;
#endif

}  // namespace rush::functors
