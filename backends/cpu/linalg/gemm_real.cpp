#include "backends/cpu/linalg/gemm_impl.h"

namespace rush::cpu {

RUSH_INSTANTIATE_GEMM(float);
RUSH_INSTANTIATE_GEMM(double);

}  // namespace rush::cpu
