// Stands for Eigen's decompositions in the library of the demo and the labs, which call none: they take the compiler
// more than a minute.
#include "backends/cpu/linalg/decompositions.h"

namespace rush::cpu {

namespace {

[[noreturn]] void refuse() {
  RUSH_THROW(NotImplementedError,
             "Eigen's decompositions are not in the library of the demo and the labs; rushlight has them");
}

}  // namespace

template <class W>
auto Decompositions<W>::svd(const Matrix&, unsigned) -> Svd {
  refuse();
}
template <class W>
auto Decompositions<W>::singular_values(const Matrix&) -> Svd {
  refuse();
}
template <class W>
auto Decompositions<W>::eigh(const Matrix&) -> Eigh {
  refuse();
}
template <class W>
auto Decompositions<W>::eig(const Matrix&) -> Eig {
  refuse();
}
template <class W>
auto Decompositions<W>::qr(Matrix, int64_t, bool) -> Qr {
  refuse();
}
template <>
auto Decompositions<std::complex<double>>::svd(const Matrix&, unsigned) -> Svd {
  refuse();
}

template struct Decompositions<double>;
template struct Decompositions<std::complex<double>>;

}  // namespace rush::cpu
