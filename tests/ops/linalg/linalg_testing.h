// What the tests of linear algebra share: matrices of full rank, and a comparison by the dtype's precision.
#pragma once
#include <cmath>

#include "tests/ops/index/index_testing.h"

namespace rush::testing::linalg {

inline constexpr ScalarType kTypes[] = {kFloat32, kFloat64, kComplex64, kComplex128};

// Sizes of matrices: square ones, and of any height and width. GPUs compute batches of small ones otherwise than
// others.
inline const DimVector kSquares[] = {{1, 1}, {5, 5}, {2, 3, 4, 4}, {0, 0}, {0, 3, 3}, {70, 70}, {3, 20, 20}};
inline const DimVector kOblongs[] = {{5, 5}, {7, 4},    {4, 7},   {2, 3, 6, 2}, {1, 1},      {3, 0},
                                     {0, 3}, {0, 2, 2}, {33, 20}, {4, 16, 8},   {3, 33, 20}, {2, 64, 3}};

// Values between -1 and 1 with a gradient. Unlike a wave's, whose rows are combinations of two, theirs make matrices of
// full rank.
inline Tensor full_rank_leaf(IntArrayRef sizes, double phase = 0) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto x = static_cast<double>(i);
    t.data_ptr<double>()[i] = std::sin(1.7 * x + 0.3 * x * x + phase);
  }
  return t.requires_grad_();
}

// Some matrices with nothing special about them.
inline Tensor matrices(DimVector sizes, ScalarType dtype, double phase = 0) {
  if (!is_complex(dtype)) return full_rank_leaf(sizes, phase).detach().to(dtype);
  sizes.push_back(2);
  return view_as_complex(full_rank_leaf(sizes, phase).detach()).to(dtype);
}
inline double tolerance(ScalarType dtype) { return to_real(dtype) == kFloat32 ? 2e-4 : 1e-11; }

inline void check_close(const Tensor& a, const Tensor& b) {
  CHECK(a.sizes() == b.sizes());
  if (a.numel() == 0) return;
  const double error = largest(a - b), scale = 1 + largest(b);
  CHECK(error <= tolerance(a.scalar_type()) * scale);
}

}  // namespace rush::testing::linalg
