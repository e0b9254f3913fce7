// The functions of decompositions.h, which decompositions_real.cpp, decompositions_real_eig.cpp and
// decompositions_complex.cpp instantiate.
#pragma once
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>
#include <type_traits>

#include "backends/cpu/linalg/bidiagonal.h"
#include "backends/cpu/linalg/decompositions.h"

namespace rush::cpu {

template <class W>
auto Decompositions<W>::svd(const Matrix& a, unsigned options) -> Svd {
  const Eigen::BDCSVD<Matrix> svd(a, options);
  if (svd.info() != Eigen::Success) return {{}, {}, {}, svd.info()};
  return {svd.matrixU(), svd.singularValues(), svd.matrixV(), 0};
}

// a = u b v^H for a real and bidiagonal b with the same singular values.
template <class W>
auto Decompositions<W>::singular_values(const Matrix& a) -> Svd {
  const double scale = a.cwiseAbs().template maxCoeff<Eigen::PropagateNaN>();
  if (!std::isfinite(scale)) return {{}, {}, {}, Eigen::InvalidInput};
  const double divisor = scale == 0 ? 1 : scale;  // norms of columns neither overflow nor vanish
  const Matrix tall = a.rows() < a.cols() ? Matrix(a.adjoint() / divisor) : Matrix(a / divisor);
  const Eigen::internal::UpperBidiagonalization<Matrix> bidiagonal(tall);
  Eigen::VectorXd s = bidiagonal.bidiagonal().diagonal(), above = Eigen::VectorXd::Zero(s.size());
  if (s.size() > 1) above.head(s.size() - 1) = bidiagonal.bidiagonal().diagonal(1);
  if (!bidiagonal_singular_values(s.data(), above.data(), s.size())) return {{}, {}, {}, Eigen::NoConvergence};
  return {{}, s * divisor, {}, 0};
}

template <class W>
auto Decompositions<W>::eigh(const Matrix& a) -> Eigh {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(a);
  return {solver.eigenvalues(), solver.eigenvectors(), solver.info()};
}

template <class W>
auto Decompositions<W>::eig(const Matrix& a) -> Eig {
  using Solver =
      std::conditional_t<std::is_same_v<W, double>, Eigen::EigenSolver<Matrix>, Eigen::ComplexEigenSolver<Matrix>>;
  const Solver solver(a);
  if (solver.info() != Eigen::Success) return {{}, {}, solver.info()};
  return {solver.eigenvalues(), solver.eigenvectors().colwise().normalized(), 0};
}

template <class W>
auto Decompositions<W>::qr(Matrix a, int64_t k, bool with_q) -> Qr {
  const Eigen::HouseholderQR<Matrix> qr(a);
  a.resize(0, 0);  // the factors get its memory: fresh pages would be a twentieth of the time at n = 128
  Qr factors;
  factors.r = qr.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
  if (with_q) factors.q = qr.householderQ() * Matrix::Identity(qr.rows(), k);
  return factors;
}

}  // namespace rush::cpu
