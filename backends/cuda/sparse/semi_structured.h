// 2:4 matrices on CUDA: Note [Semi-structured matrices].
#pragma once
#include <atomic>

#include "core/ops/sparse/semi_structured.h"

namespace rush::cuda {

// How many descriptors and plans of cuSPARSELt exist in all threads. Tests check that none leaks.
inline constinit std::atomic<int> live_cusparselt_objects{0};

// What kernels::cslt_compress, cslt_decompress and cslt_sparse_mm are here. They throw NotImplementedError for other
// dtypes than float16 and bfloat16, for a GPU without sparse tensor cores, and in a build without cuSPARSELt.
void cslt_compress(Tensor& packed, const Tensor& dense);
void cslt_decompress(const Tensor& dense, const Tensor& packed);
void cslt_sparse_mm(const Tensor& out, const SemiStructuredProduct& product);

}  // namespace rush::cuda
