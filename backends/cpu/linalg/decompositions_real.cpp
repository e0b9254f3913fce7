#include "backends/cpu/linalg/decompositions_impl.h"

namespace rush::cpu {

template struct Decompositions<double>;

}  // namespace rush::cpu
