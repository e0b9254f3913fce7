// Singular values without their vectors.
#pragma once
#include <cstdint>

namespace rush::cpu {

// The singular values of the upper bidiagonal matrix of n numbers on the diagonal and n - 1 above them, none of them
// above 1 or so: replaces the diagonal by them, in descending order, and spoils the others. Returns whether the
// iteration came to an end.
bool bidiagonal_singular_values(double* diagonal, double* above, int64_t n);

}  // namespace rush::cpu
