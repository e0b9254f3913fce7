#include "backends/cpu/linalg/bidiagonal.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace rush::cpu {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = 1e-70;     // with its fourth power a sweep still computes
constexpr int64_t kMostSteps = 60;  // for each value; about two are usual

// The rotation that turns (f, g) into (length, 0).
struct Rotation {
  double length, cosine = 1, sine = 0;
  Rotation(double f, double g) {
    const double square = f * f + g * g;
    length = std::sqrt(square);
    if (square < kTiny * kTiny * kTiny * kTiny) return;
    const double inverse = length * (1 / square);  // the division does not wait for the root
    cosine = f * inverse;
    sine = g * inverse;
  }
};

// Golub and Reinsch, "Singular value decomposition and least squares solutions" (Numer. Math. 14, 1970), as LINPACK's
// dsvdc goes about it. d is the diagonal, e what stands above it: e[i] to the right of d[i].
struct Bidiagonal {
  double *d, *e;

  bool is_negligible(int64_t i) const {
    return std::abs(e[i]) <= kTiny + kEpsilon * (std::abs(d[i]) + std::abs(d[i + 1]));
  }
  // d[last] is 0: moves e[last - 1] upwards and out of the block that begins at `first`.
  void clear_column(int64_t first, int64_t last) {
    double f = e[last - 1];
    e[last - 1] = 0;
    for (int64_t i = last - 1; i >= first; --i) {
      const Rotation r(d[i], f);
      d[i] = r.length;
      if (i == first) break;
      f = -r.sine * e[i - 1];
      e[i - 1] *= r.cosine;
    }
  }
  // d[zero] is 0: moves e[zero] to the right and out of the block that ends with `last`.
  void clear_row(int64_t zero, int64_t last) {
    double f = e[zero];
    e[zero] = 0;
    for (int64_t i = zero + 1; i <= last; ++i) {
      const Rotation r(d[i], f);
      d[i] = r.length;
      if (i == last) break;
      f = -r.sine * e[i];
      e[i] *= r.cosine;
    }
  }
  // An eigenvalue of the last 2 x 2 block of B^T B minus d[last]^2: the one that is closer to 0.
  double shift(int64_t last) const {
    const double b = ((d[last - 1] + d[last]) * (d[last - 1] - d[last]) + e[last - 1] * e[last - 1]) / 2;
    const double product = d[last] * e[last - 1], c = product * product;
    if (c == 0) return 0;
    return c / (b + std::copysign(std::sqrt(b * b + c), b));
  }
  // One implicit step of QR with that shift on the block from `first` to `last`.
  void sweep(int64_t first, int64_t last) {
    double f = (d[first] + d[last]) * (d[first] - d[last]) + shift(last), g = d[first] * e[first];
    for (int64_t i = first; i < last; ++i) {
      const Rotation right(f, g);
      if (i > first) e[i - 1] = right.length;
      f = right.cosine * d[i] + right.sine * e[i];
      e[i] = right.cosine * e[i] - right.sine * d[i];
      g = right.sine * d[i + 1];
      d[i + 1] *= right.cosine;
      const Rotation left(f, g);
      d[i] = left.length;
      f = left.cosine * e[i] + left.sine * d[i + 1];
      d[i + 1] = left.cosine * d[i + 1] - left.sine * e[i];
      if (i + 1 == last) break;
      g = left.sine * e[i + 1];
      e[i + 1] *= left.cosine;
    }
    e[last - 1] = f;
  }
};

}  // namespace

bool bidiagonal_singular_values(double* diagonal, double* above, int64_t n) {
  Bidiagonal b{diagonal, above};
  int64_t steps = 0;
  for (int64_t last = n - 1; last > 0;) {
    int64_t first = last;  // of the last block whose e are not negligible
    while (first > 0 && !b.is_negligible(first - 1)) --first;
    if (first == last) {
      --last;
      continue;
    }
    int64_t zero = last;
    const auto beside = [&] { return std::abs(zero > first ? above[zero - 1] : above[zero]); };
    while (zero >= first && std::abs(diagonal[zero]) > kTiny + kEpsilon * beside()) --zero;
    if (++steps > kMostSteps * n) return false;
    if (zero == last) {
      diagonal[last] = 0;
      b.clear_column(first, last);
    } else if (zero >= first) {
      diagonal[zero] = 0;
      b.clear_row(zero, last);
    } else {
      b.sweep(first, last);
    }
  }
  for (int64_t i = 0; i < n; ++i) diagonal[i] = std::abs(diagonal[i]);
  std::sort(diagonal, diagonal + n, std::greater<>());
  return true;
}

}  // namespace rush::cpu
