// QR decomposition by Householder's reflections, with columns side by side in memory.
#pragma once
#include "backends/cpu/linalg/dense.h"

namespace rush::cpu {

// Of a matrix (n, m) given by its columns: column j is columns[j * n ... j * n + n).
template <class T>
class HouseholderQr {
 public:
  HouseholderQr(int64_t n, int64_t m) : n_(n), m_(m), columns_(n * m), tau_(std::min(n, m)) {}

  // To be filled before `factor`.
  T* column(int64_t j) const { return columns_.data() + j * n_; }

  void factor() const {
    for (int64_t k = 0; k < reflections(); ++k) {
      T* v = column(k) + k;
      tau_[k] = make_reflection(v, n_ - k);
      // H^H brings the others to the same basis.
      for (int64_t j = k + 1; j < m_; ++j) reflect(column(j) + k, v, conjugate(tau_[k]), n_ - k);
    }
  }
  T r(int64_t i, int64_t j) const { return i <= j ? column(j)[i] : T(0); }

  // x := Q x, for a vector of n.
  void apply_q(T* x) const {
    for (int64_t k = reflections(); k-- > 0;) reflect(x + k, column(k) + k, tau_[k], n_ - k);
  }
  int64_t reflections() const { return std::min(n_, m_); }

 private:
  int64_t n_, m_;
  Scratch<T> columns_, tau_;
};

}  // namespace rush::cpu
