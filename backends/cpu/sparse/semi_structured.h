// 2:4 matrices on the CPU: Note [Semi-structured matrices].
#pragma once
#include "core/ops/sparse/semi_structured.h"

namespace rush::cpu {

// What kernels::cslt_compress, cslt_decompress and cslt_sparse_mm are here.
void cslt_compress(Tensor& packed, const Tensor& dense);
void cslt_decompress(const Tensor& dense, const Tensor& packed);
void cslt_sparse_mm(const Tensor& out, const SemiStructuredProduct& product);

}  // namespace rush::cpu
