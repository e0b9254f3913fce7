// For gemm_*.cpp, each of which compiles the products of some types: they take the compiler long.
#pragma once
#include "backends/cpu/linalg/gemm_impl.h"

#define RUSH_INSTANTIATE_GEMM(Math)                                                                                  \
  template void pack_rows(const LaneSource<Math>&, int64_t, int64_t, int64_t, int64_t, gemm_real_t<Math>*);          \
  template void pack_columns(const LaneSource<Math>&, int64_t, int64_t, int64_t, int64_t, gemm_real_t<Math>*);       \
  template void multiply_packed(int64_t, int64_t, int64_t, const gemm_real_t<Math>*, const gemm_real_t<Math>*, Math, \
                                Math, MatrixRef<Math>);                                                              \
  template void multiply(int64_t, int64_t, int64_t, const LaneSource<Math>&, const LaneSource<Math>&, Math, Math,    \
                         MatrixRef<Math>)
