#include "backends/cuda/kernels/index/sorted_scatter_impl.h"

namespace rush::cuda {

void scatter_sorted_extreme(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order,
                            bool largest) {
  (largest ? pick<SortedScatterLoop<functors::WriteMaximum>>(RealAndBoolTypes(), dtype, op)
           : pick<SortedScatterLoop<functors::WriteMinimum>>(RealAndBoolTypes(), dtype, op))(op, plan, order);
}

}  // namespace rush::cuda
