// Checks of the factors of a product, which mm, matmul, linear and those of sparse matrices share.
#pragma once
#include "core/tensor.h"

namespace rush::native {

/// Throws ValueError unless the last dimension of `a` has the size of the last but one of `b`, or of the only one where
/// `b` is a vector. Both have a dimension.
void check_factor_shapes(const char* op, const Tensor& a, const Tensor& b);

/// Throws ValueError unless both are batches of as many matrices, which can be multiplied.
void check_factor_batches(const char* op, const Tensor& batch1, const Tensor& batch2);

/// Throws TypeError unless both have one dtype.
void check_factor_dtypes(const char* op, const Tensor& a, const Tensor& b);

/// Throws unless `self`, to which a product of `sizes` is added, has the dtype and device of a factor and expands to
/// it.
void check_addend(const char* op, const Tensor& self, const Tensor& factor, IntArrayRef sizes);

/// 2x3
std::string product_text(IntArrayRef sizes);

}  // namespace rush::native
