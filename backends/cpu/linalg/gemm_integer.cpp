#include "backends/cpu/linalg/gemm_instantiate.h"

namespace rush::cpu {

RUSH_INSTANTIATE_GEMM(uint32_t);
RUSH_INSTANTIATE_GEMM(uint64_t);

}  // namespace rush::cpu
