// Rushlight's matrices as Eigen's. Eigen's types stay in the files of this folder that include this header.
// The decompositions that Eigen does faster than code of ours did are Eigen's: see docs/performance.md.
#pragma once
#include <Eigen/Core>
#include <complex>

#include "backends/cpu/linalg/dense.h"

namespace rush::cpu {

template <class T>
struct EigenScalar {
  using type = T;
  using wide = double;
};
template <class T>
struct EigenScalar<complex<T>> {
  using type = std::complex<T>;  // of the same layout
  using wide = std::complex<double>;
};
template <class T>
using eigen_t = typename EigenScalar<T>::type;

/// What Eigen computes in: double precision, also for float. A decomposition of one more type takes the compiler up to
/// 40 s.
template <class T>
using EigenMatrix = Eigen::Matrix<typename EigenScalar<T>::wide, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using RowMajorMap = Eigen::Map<Eigen::Matrix<eigen_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// Matrix `i` of a row-major tensor (B, n, m).
template <class T>
RowMajorMap<T> eigen_matrix(const Tensor& t, int64_t i) {
  return {reinterpret_cast<eigen_t<T>*>(matrix_of<T>(t, i).data), t.size(1), t.size(2)};
}

/// A copy of it in double precision.
template <class T>
EigenMatrix<T> wide_matrix(const Tensor& t, int64_t i) {
  return eigen_matrix<T>(t, i).template cast<typename EigenScalar<T>::wide>();
}

/// Row `i` of a row-major tensor (B, n).
template <class T>
Eigen::Map<Eigen::Matrix<eigen_t<T>, Eigen::Dynamic, 1>> eigen_vector(const Tensor& t, int64_t i) {
  return {reinterpret_cast<eigen_t<T>*>(t.data_ptr<T>() + i * t.size(1)), t.size(1)};
}

}  // namespace rush::cpu
