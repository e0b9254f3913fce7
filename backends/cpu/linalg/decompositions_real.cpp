#include "backends/cpu/linalg/decompositions_impl.h"

namespace rush::cpu {

template auto Decompositions<double>::svd(const Matrix&, unsigned) -> Svd;
template auto Decompositions<double>::singular_values(const Matrix&) -> Svd;
template auto Decompositions<double>::eigh(const Matrix&) -> Eigh;
template auto Decompositions<double>::qr(Matrix, int64_t, bool) -> Qr;

}  // namespace rush::cpu
