#include "backends/cpu/linalg/gemm_instantiate.h"

namespace rush::cpu {

RUSH_INSTANTIATE_GEMM(complex<float>);
RUSH_INSTANTIATE_GEMM(complex<double>);

}  // namespace rush::cpu
