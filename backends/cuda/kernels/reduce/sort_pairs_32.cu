#include "backends/cuda/kernels/reduce/sort_pairs_impl.h"

namespace rush::cuda {

template void sort_pairs(const uint32_t*, uint32_t*, const int64_t*, int64_t*, int64_t, int);
template void sort_pairs(const uint32_t*, uint32_t*, const uint32_t*, uint32_t*, int64_t, int);

}  // namespace rush::cuda
