// Apart from decompositions_real.cpp, where GCC inlines less of it: it took a fourteenth more time at n = 32.
#include "backends/cpu/linalg/decompositions_impl.h"

namespace rush::cpu {

template auto Decompositions<double>::eig(const Matrix&) -> Eig;

}  // namespace rush::cpu
