#include <array>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/linalg/least_squares.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/lu.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

// Pade's approximant of degree 13, (V - U)^-1 (V + U) with the even part V and the odd part U of one polynomial, exact
// to double precision for 1-norms up to kNorm (N. Higham, "The scaling and squaring method for the matrix exponential
// revisited", 2005, algorithm 2.3).
constexpr double kNorm = 5.371920351148152;
constexpr std::array<double, 14> kPade = {64764752532480000,
                                          32382376266240000,
                                          7771770303897600,
                                          1187353796428800,
                                          129060195264000,
                                          10559470521600,
                                          670442572800,
                                          33522128640,
                                          1323241920,
                                          40840800,
                                          960960,
                                          16380,
                                          182,
                                          1};

Tensor pade(const Tensor& a) {
  const auto c = [](size_t i) { return kPade[i] / kPade[0]; };
  const Tensor a2 = a.matmul(a), a4 = a2.matmul(a2), a6 = a4.matmul(a2);
  const Tensor one = eye(a.size(-1), TensorOptions(a.scalar_type()).device(a.device()));
  // c_i + c_(i+2) A^2 + ... + c_(i+12) A^12
  const auto part = [&](size_t i) {
    const Tensor high = a6 * c(i + 12) + a4 * c(i + 10) + a2 * c(i + 8);
    return a6.matmul(high) + a6 * c(i + 6) + a4 * c(i + 4) + a2 * c(i + 2) + one * c(i);
  };
  const Tensor odd = a.matmul(part(1)), even = part(0);
  // The denominator of a finite matrix has an inverse; that of others may be called singular, and gives NaN.
  const auto [factors, pivots, info] = rush::linalg_lu_factor_ex(even - odd);
  return rush::linalg_lu_solve(factors, pivots, even + odd);
}

// exp(A) = exp(A / 2^s)^(2^s), where A / 2^s is small enough. Each of the s squarings doubles the relative error, and
// the denominator has a condition of up to e^kNorm, so that single precision would lose digits: it is computed in
// double.
Tensor linalg_matrix_exp(const Tensor& input) {
  if (input.scalar_type() == kHalf || input.scalar_type() == kBFloat16) {
    return native::linalg_matrix_exp(input.to(kFloat32)).to(input.scalar_type());
  }
  check_square("linalg_matrix_exp", input);
  if (input.numel() == 0 || input.is_meta()) return empty_like_matrices(input, input.sizes());
  const Tensor a = input.to(input.is_complex() ? kComplex128 : kFloat64);
  const Tensor norms = a.abs().sum(-2, true).amax({-1}, true);  // (..., 1, 1)
  const Tensor squarings = (norms / kNorm).log2().ceil().clamp_min(0).nan_to_num(0, 0, 0);
  const auto most = static_cast<int64_t>(squarings.max().item<double>());
  Tensor out = pade(a * (-squarings).exp2());
  for (int64_t i = 0; i < most; ++i) out = where(squarings.gt(i), out.matmul(out), out);
  return out.to(input.scalar_type());
}

}  // namespace
}  // namespace native

void register_matrix_exp_ops(Registry& r) {
  r.native(ops::linalg_matrix_exp, native::linalg_matrix_exp);
  r.composite(ops::matrix_exp, native::same_as<ops::linalg_matrix_exp>);
}

Tensor Tensor::matrix_exp() const { return ops::matrix_exp(*this); }

}  // namespace rush
