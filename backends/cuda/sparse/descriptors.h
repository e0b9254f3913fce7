// cuSPARSE's descriptors of matrices and vectors. A descriptor does not own the memory it points at, and lives for one
// call.
#pragma once
#include <atomic>

#include "backends/cuda/sparse/handle.h"
#include "core/ops/sparse/sparse_kernels.h"

namespace rush::cuda {

// How many descriptors exist in all threads. Tests check that none leaks.
inline constinit std::atomic<int> live_sparse_descriptors{0};

// Owns a descriptor that `create(&descriptor)` makes; throws if that fails.
template <class Handle, auto destroy>
class SparseDescriptor {
 public:
  template <class Create>
  explicit SparseDescriptor(const Create& create) {
    RUSH_CUDA_CHECK(create(&handle_));
    ++live_sparse_descriptors;
  }
  ~SparseDescriptor() {
    // This cannot fail for a descriptor that was created.
    static_cast<void>(destroy(handle_));
    --live_sparse_descriptors;
  }
  SparseDescriptor(const SparseDescriptor&) = delete;
  SparseDescriptor& operator=(const SparseDescriptor&) = delete;

  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using SparseMatrixDescriptor = SparseDescriptor<cusparseSpMatDescr_t, cusparseDestroySpMat>;
using DenseMatrixDescriptor = SparseDescriptor<cusparseDnMatDescr_t, cusparseDestroyDnMat>;
using DenseVectorDescriptor = SparseDescriptor<cusparseDnVecDescr_t, cusparseDestroyDnVec>;
using SparseProductDescriptor = SparseDescriptor<cusparseSpGEMMDescr_t, cusparseSpGEMM_destroyDescr>;

// All tensors must be row-major, of `type`, and on the current device.
inline SparseMatrixDescriptor describe(const CsrMatrix& m, const Tensor& values, cudaDataType type) {
  const cusparseIndexType_t index = m.crow.scalar_type() == kInt32 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
  return SparseMatrixDescriptor([&](cusparseSpMatDescr_t* made) {
    return cusparseCreateCsr(made, m.rows, m.columns, m.col.defined() ? m.nnz() : 0, m.crow.data_ptr(),
                             m.col.defined() ? m.col.data_ptr() : nullptr,
                             values.defined() ? values.data_ptr() : nullptr, index, index, CUSPARSE_INDEX_BASE_ZERO,
                             type);
  });
}
inline DenseMatrixDescriptor describe_matrix(const Tensor& m, cudaDataType type) {
  return DenseMatrixDescriptor([&](cusparseDnMatDescr_t* made) {
    return cusparseCreateDnMat(made, m.size(0), m.size(1), m.size(1), m.data_ptr(), type, CUSPARSE_ORDER_ROW);
  });
}
// The transpose of `m`, a view of the same memory.
inline DenseMatrixDescriptor describe_transposed(const Tensor& m, cudaDataType type) {
  return DenseMatrixDescriptor([&](cusparseDnMatDescr_t* made) {
    return cusparseCreateDnMat(made, m.size(1), m.size(0), m.size(1), m.data_ptr(), type, CUSPARSE_ORDER_COL);
  });
}
inline DenseVectorDescriptor describe_vector(const Tensor& v, cudaDataType type) {
  return DenseVectorDescriptor(
      [&](cusparseDnVecDescr_t* made) { return cusparseCreateDnVec(made, v.numel(), v.data_ptr(), type); });
}

}  // namespace rush::cuda
