#include "backends/cpu/linalg/gemm_instantiate.h"

namespace rush::cpu {

RUSH_INSTANTIATE_GEMM(float);
RUSH_INSTANTIATE_GEMM(double);

}  // namespace rush::cpu
