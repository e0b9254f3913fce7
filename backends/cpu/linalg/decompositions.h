// Eigen's decompositions, for float and double in double precision, for complex numbers in that of complex<double>.
#pragma once
#include <cstdint>

#include "backends/cpu/linalg/eigen.h"

namespace rush::cpu {

// All of one number type are compiled in one source: the products and Householder reflections that they share take the
// compiler most of its time.
template <class W>
struct Decompositions {
  using Matrix = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic>;

  struct Svd {  // u * diag(s) * v^H
    Matrix u;
    Eigen::VectorXd s;
    Matrix v;
    int32_t info;  // 0: it was found
  };
  // Of a matrix that is not empty. `options` are Eigen's, which say whether u and v are full or thin.
  static Svd svd(const Matrix& a, unsigned options);
  // Of such a matrix, s and info alone.
  static Svd singular_values(const Matrix& a);

  struct Eigh {  // vectors * diag(values) * vectors^H, values ascending
    Eigen::VectorXd values;
    Matrix vectors;
    int32_t info;
  };
  // Reads the lower triangle.
  static Eigh eigh(const Matrix& a);

  struct Eig {  // a * vectors = vectors * diag(values), vectors of norm 1
    Eigen::VectorXcd values;
    Eigen::MatrixXcd vectors;
    int32_t info;
  };
  static Eig eig(const Matrix& a);

  struct Qr {  // q * r
    Matrix q, r;
  };
  // The first k columns of q, or none, and the first k rows of r.
  static Qr qr(Matrix a, int64_t k, bool with_q);
};

template <>
auto Decompositions<std::complex<double>>::svd(const Matrix& a, unsigned options) -> Svd;
extern template struct Decompositions<double>;
extern template struct Decompositions<std::complex<double>>;

// Those in which the decompositions of T are computed.
template <class T>
using DecompositionsOf = Decompositions<typename EigenScalar<T>::wide>;

}  // namespace rush::cpu
