#include "backends/cuda/kernels/index/sorted_scatter_impl.h"

namespace rush::cuda {

void scatter_sorted_add(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order) {
  pick<SortedScatterLoop<functors::WriteAdd>>(AllTypes(), dtype, op)(op, plan, order);
}

void scatter_sorted_multiply(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order) {
  pick<SortedScatterLoop<functors::WriteMultiply>>(AllTypes(), dtype, op)(op, plan, order);
}

}  // namespace rush::cuda
