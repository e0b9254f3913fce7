// Quasi-random numbers: Sobol' sequences, which fill the unit cube more evenly than random numbers do.
#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace rush::quasirandom {

/// A Sobol' sequence in [0, 1)^dimension: torch.quasirandom.SobolEngine with the directions of Joe and Kuo (2008), in
/// Gray code order (Antonov and Saleev, 1979). Without scrambling its points equal PyTorch's, bit for bit; they are
/// the same on every device. A scrambled sequence (Owen, 1998; Matousek, 1998: a random lower triangular matrix for
/// each dimension, then a random shift) depends on the seed alone.
class SobolEngine {
 public:
  static constexpr int64_t kMaxDimension = 1111;  // as many as there are primitive polynomials up to degree 13
  static constexpr int kBits = 30;                // of each number; a sequence has 2^30 points

  /// Starts a sequence. Without a seed, a scrambled one takes its random bits from the CPU's default generator. The
  /// points are made on `device`. Throws ValueError unless 1 <= dimension <= kMaxDimension.
  explicit SobolEngine(int64_t dimension, bool scramble = false, std::optional<uint64_t> seed = std::nullopt,
                       Device device = get_default_device());

  /// The next n points, (n, dimension). Throws ValueError if n is negative or the sequence has no n points left,
  /// TypeError unless dtype is a real floating type. float32 rounds the last points of the cube up to 1, as in PyTorch.
  Tensor draw(int64_t n = 1, ScalarType dtype = kFloat32);

  /// The next 2^m points. Throws ValueError if that leaves a number of points that is no power of two: only then are
  /// they balanced.
  Tensor draw_base2(int m, ScalarType dtype = kFloat32);

  /// Goes back to the first point.
  SobolEngine& reset();

  /// Leaves out the next n points. Throws ValueError as draw does.
  SobolEngine& fast_forward(int64_t n);

  int64_t dimension() const { return dimension_; }          // numbers of each point
  int64_t num_generated() const { return num_generated_; }  // points drawn or left out since the first

 private:
  void scramble(std::optional<uint64_t> seed);
  Tensor points(int64_t first, int64_t count, int log2_step, bool shifted) const;

  int64_t dimension_, num_generated_ = 0;
  Device device_;
  std::vector<uint32_t> directions_;  // (kBits, dimension): what bit b of a Gray code adds to each coordinate
  std::vector<uint32_t> shift_;       // (dimension): the first point
};

}  // namespace rush::quasirandom
