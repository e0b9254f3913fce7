#include "backends/cpu/linalg/decompositions_impl.h"

namespace rush::cpu {

template struct Decompositions<std::complex<double>>;

}  // namespace rush::cpu
