#include "backends/cpu/linalg/decompositions_impl.h"

namespace rush::cpu {

namespace {

using Complex = std::complex<double>;
using ComplexMatrix = Decompositions<Complex>::Matrix;

// u * (inner; 0) of `cols` columns, or u itself where there are as many as rows: (inner, 0; 0, 1).
template <class Sequence>
ComplexMatrix reflected(const Sequence& u, const Eigen::MatrixXd& inner, int64_t cols) {
  ComplexMatrix result = ComplexMatrix::Identity(u.rows(), cols);
  result.topLeftCorner(inner.rows(), inner.cols()) = inner.cast<Complex>();
  result.applyOnTheLeft(u);
  return result;
}

}  // namespace

// BDCSVD brings a matrix to a real upper bidiagonal one by Householder reflections, a = u b v^H, and goes on with real
// numbers. Of complex numbers only that beginning is compiled, since all of it takes the compiler half a minute.
template <>
auto Decompositions<Complex>::svd(const Matrix& a, unsigned options) -> Svd {
  const int64_t n = std::min(a.rows(), a.cols());
  const bool is_wide = a.rows() < a.cols();
  const double scale = a.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  if (!std::isfinite(scale)) return {{}, {}, {}, Eigen::InvalidInput};
  const double divisor = scale == 0 ? 1 : scale;  // norms of columns neither overflow nor vanish
  const Matrix tall = is_wide ? Matrix(a.adjoint() / divisor) : Matrix(a / divisor);
  Eigen::internal::UpperBidiagonalization<Matrix> bidiagonal(tall);
  const Eigen::MatrixXd b = bidiagonal.bidiagonal().toDenseMatrix();
  const auto inner = Decompositions<double>::svd(b, Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (inner.info != 0) return {{}, {}, {}, inner.info};
  const bool is_full = options & (is_wide ? Eigen::ComputeFullV : Eigen::ComputeFullU);
  Matrix u = reflected(bidiagonal.householderU(), inner.u, is_full ? tall.rows() : n);
  Matrix v = reflected(bidiagonal.householderV(), inner.v, n);
  if (is_wide) std::swap(u, v);
  return {std::move(u), inner.s * divisor, std::move(v), 0};
}

template struct Decompositions<Complex>;

}  // namespace rush::cpu
