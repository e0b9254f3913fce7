// The kernels of sparse products. All matrices are in CSR with indices of int64 or int32, everything is row-major and
// of one dtype, floating point or complex, and sums do not depend on the number of threads.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/tensor.h"

namespace rush {

/// A CSR matrix (rows, columns) by its parts.
struct CsrMatrix {
  Tensor crow, col, values;
  int64_t rows, columns;

  int64_t nnz() const { return col.numel(); }

  template <class F>
  void each_tensor(const F& f) {
    for (Tensor* t : {&crow, &col, &values}) f(*t);
  }
};

namespace kernels {
// c = beta c + alpha a b: (n, k) x (k, m) -> (n, m), a sparse. With beta 0, c need not be initialised.
inline constinit Kernel<void(const Tensor& c, const CsrMatrix& a, const Tensor& b, const Scalar& beta,
                             const Scalar& alpha)>
    sparse_mm{"sparse_mm"};
// The product of two sparse matrices, (n, k) x (k, m). The kernel makes the parts of the result, whose columns ascend
// in each row; an entry whose sum is 0 is kept.
inline constinit Kernel<void(CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b)> sparse_matmul{"sparse_matmul"};
// values = beta values + alpha (a b^T) at the entries of `pattern`: (n, k) x (m, k) sampled. `pattern` has no values.
inline constinit Kernel<void(const Tensor& values, const CsrMatrix& pattern, const Tensor& a, const Tensor& b,
                             const Scalar& beta, const Scalar& alpha)>
    sparse_sampled_mm{"sparse_sampled_mm"};
// Sorts the entries of a CSR matrix by columns: where each column begins (columns + 1) and the row of each entry, of
// the indices' dtype, and the entries' numbers (int64) in that order, ascending in each column. The outputs are
// allocated.
inline constinit Kernel<void(const Tensor& ccol, const Tensor& row, const Tensor& order, const CsrMatrix& a)>
    sparse_transpose{"sparse_transpose"};
}  // namespace kernels

}  // namespace rush
