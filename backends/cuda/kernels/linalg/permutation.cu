#include "backends/cuda/solver/permutation.h"

#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

namespace {

// One thread makes the exchanges of one matrix, which come one after the other. Pivots of a matrix with NaNs may be any
// numbers: those that are no row leave it where it is.
struct Exchange {
  int64_t* order;
  const int32_t* pivots;
  int64_t n, k;
  __device__ void operator()(int64_t i) const {
    int64_t* rows = order + i * n;
    for (int64_t j = 0; j < n; ++j) rows[j] = j;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t other = pivots[i * k + j] - 1, row = rows[j];
      if (other < 0 || other >= n) continue;
      rows[j] = rows[other];
      rows[other] = row;
    }
  }
};

}  // namespace

void permutation(const Tensor& order, const Tensor& pivots) {
  for_each_index("pivots_to_permutation", order.size(0),
                 Exchange{order.data_ptr<int64_t>(), pivots.data_ptr<int32_t>(), order.size(1), pivots.size(1)});
}

}  // namespace rush::cuda
