// How many multiplications and additions operators do.
#pragma once
#include "core/dispatch/op.h"

namespace rush::profiler {

// For each element of the call's first result; 0 of operators that are not counted. A multiplication and an addition
// count 1 each, so that a product of matrices (m, k) and (k, n) takes 2 m k n.
double flops_per_result(const OpBase& op, const Stack& arguments);

}  // namespace rush::profiler
