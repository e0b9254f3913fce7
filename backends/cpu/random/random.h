// What the kernels of both random streams share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/error/error.h"
#include "core/tensor.h"

namespace rush::cpu {

// Of multinomial: throws ValueError unless they are finite, not negative, and `needed` of them above zero.
template <class T>
void check_weights(const T* weight, int64_t n, int64_t needed) {
  int64_t above_zero = 0;
  for (int64_t i = 0; i < n; ++i) {
    RUSH_CHECK_VALUE(std::isfinite(weight[i]) && weight[i] >= 0,
                     "multinomial: probability tensor contains either `inf`, `nan` or element < 0: ", weight[i]);
    above_zero += weight[i] > 0;
  }
  RUSH_CHECK_VALUE(above_zero >= needed, "multinomial: invalid multinomial distribution: ", needed,
                   " samples need as many weights above zero, got ", above_zero);
}

// The indices of the largest scores, the largest first, the lower index of equal ones.
template <class T>
void largest_scores(const std::vector<T>& score, int64_t samples, int64_t* to) {
  std::vector<int64_t> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    const T x = score[static_cast<size_t>(a)], y = score[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::copy_n(order.begin(), samples, to);
}

// Of bernoulli_: float32 or float64. Throws ValueError for a probability outside [0, 1].
void check_probabilities(const Tensor& p);

}  // namespace rush::cpu
