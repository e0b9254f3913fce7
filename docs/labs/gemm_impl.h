// Lab 6, products of matrices: this file takes the place of backends/cpu/linalg/gemm_impl.h. What each function has to
// do stands in docs/labs/gemm_impl.md. Write them in this order; `./rush lab 6` checks them in this order, for float
// and double. How the packed numbers are arranged is yours to choose.
#pragma once
#include <algorithm>

#include "backends/cpu/linalg/gemm_store.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/view/transpose.h"

namespace rush::cpu {

// Packs rows [row, row + rows) of A at depths [depth_begin, depth_begin + depth) into `to`.
template <class Math>
void pack_rows(const LaneSource<Math>& a, int64_t row, int64_t rows, int64_t depth_begin, int64_t depth,
               gemm_real_t<Math>* to) {
  RUSH_THROW(NotImplementedError, "begin here: a.pack(a, row, lanes, depth_begin, depth, width, to) packs some rows; ",
             "pack all ", rows, " of them, MR or fewer at a time, into ", packed_rows_size<Math>(rows, depth),
             " numbers");
}

// Packs columns [column, column + columns) of B at depths [depth_begin, depth_begin + depth) into `to`.
template <class Math>
void pack_columns(const LaneSource<Math>& b, int64_t column, int64_t columns, int64_t depth_begin, int64_t depth,
                  gemm_real_t<Math>* to) {
  RUSH_THROW(NotImplementedError, "next: pack the ", columns, " columns, NR or fewer at a time, into ",
             packed_columns_size<Math>(columns, depth), " numbers");
}

// C = alpha A B + beta C, of A and B as they were packed.
template <class Math>
void multiply_packed(int64_t rows, int64_t columns, int64_t depth, const gemm_real_t<Math>* a,
                     const gemm_real_t<Math>* b, Math alpha, Math beta, MatrixRef<Math> c) {
  RUSH_THROW(NotImplementedError, "next: compute the (", rows, ", ", columns, ") numbers of C, each a sum over ", depth,
             " depths; first number by number, then a tile of MR rows and NR columns at a time");
}

// C = alpha A B + beta C, block by block.
template <class Math>
void multiply(int64_t rows, int64_t columns, int64_t depth, const LaneSource<Math>& a, const LaneSource<Math>& b,
              Math alpha, Math beta, MatrixRef<Math> c) {
  RUSH_THROW(NotImplementedError, "last: pack blocks of A, B and multiply them, for (", rows, ", ", depth, ") by (",
             depth, ", ", columns, ")");
}

}  // namespace rush::cpu
