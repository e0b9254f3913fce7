// Products with sparse matrices by cuSPARSE's generic functions.
//
// Note [cuSPARSE's algorithms]
// Dense operands are row-major, for which SpMM has CSR_ALG2; its sums may differ in the last bit between calls. With
// globalContext().setDeterministicAlgorithms(true), SpMM uses CSR_ALG3, which always gives the same bits. SpMV always
// uses CSR_ALG2, which gives the same bits, too. Each call takes its buffer from the caching allocator, which is cheap,
// and makes descriptors, which are a few words on the host. Products of 16-bit numbers are summed in float32 and
// rounded once, as on the CPU.
#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/blas/operand.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/register.h"
#include "backends/cuda/sparse/descriptors.h"
#include "backends/cuda/sparse/semi_structured.h"
#include "core/device/context.h"
#include "core/ops/factory/factories.h"
#include "core/ops/index/index_select.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/sort.h"
#include "core/ops/sparse/sparse_kernels.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush::cuda {

namespace {

constexpr cusparseOperation_t kAsItIs = CUSPARSE_OPERATION_NON_TRANSPOSE;

void multiply_vector(const Tensor& c, const CsrMatrix& a, const Tensor& b, const BlasScalar& beta,
                     const BlasScalar& alpha, cudaDataType type) {
  const SparseHandle handle;
  const SparseMatrixDescriptor matrix = describe(a, a.values, type);
  const DenseVectorDescriptor x = describe_vector(b, type), y = describe_vector(c, type);
  size_t bytes = 0;
  RUSH_CUDA_CHECK(cusparseSpMV_bufferSize(handle, kAsItIs, alpha.data(), matrix, x, beta.data(), y, type,
                                          CUSPARSE_SPMV_CSR_ALG2, &bytes));
  const Scratch buffer(bytes);
  RUSH_CUDA_CHECK(cusparseSpMV(handle, kAsItIs, alpha.data(), matrix, x, beta.data(), y, type, CUSPARSE_SPMV_CSR_ALG2,
                               buffer.data()));
}

ScalarType sum_type(const Tensor& t) {
  const bool is_16_bit = t.scalar_type() == kHalf || t.scalar_type() == kBFloat16;
  return is_16_bit ? kFloat32 : t.scalar_type();
}

// Calls multiply(sums) with the tensor that cuSPARSE multiplies by beta and adds to, in the accumulator's dtype.
template <class Multiply>
void add_to(const Tensor& c, const Scalar& beta, const Multiply& multiply) {
  // Some of cuSPARSE's kernels multiply uninitialised memory by beta = 0, and NaN times 0 is NaN.
  if (beta.equal(0)) c.zero_();
  const Tensor sums = c.to(sum_type(c));
  multiply(sums);
  if (!sums.is_same(c)) c.copy_(sums);
}

void multiply_matrix(const Tensor& c, const CsrMatrix& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  const cudaDataType type = library_type(c.scalar_type(), "mm");
  const BlasScalar keep(beta, c.scalar_type()), factor(alpha, c.scalar_type());
  if (c.size(1) == 1) return multiply_vector(c, a, b, keep, factor, type);
  const cusparseSpMMAlg_t algorithm =
      globalContext().deterministicAlgorithms() ? CUSPARSE_SPMM_CSR_ALG3 : CUSPARSE_SPMM_CSR_ALG2;
  const SparseHandle handle;
  const SparseMatrixDescriptor matrix = describe(a, a.values, type);
  const DenseMatrixDescriptor from = describe_matrix(b, type), to = describe_matrix(c, type);
  size_t bytes = 0;
  RUSH_CUDA_CHECK(cusparseSpMM_bufferSize(handle, kAsItIs, kAsItIs, factor.data(), matrix, from, keep.data(), to, type,
                                          algorithm, &bytes));
  const Scratch buffer(bytes);
  RUSH_CUDA_CHECK(cusparseSpMM(handle, kAsItIs, kAsItIs, factor.data(), matrix, from, keep.data(), to, type, algorithm,
                               buffer.data()));
}

void sparse_mm(const Tensor& c, const CsrMatrix& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (c.numel() == 0) return;
  if (a.nnz() == 0) return scale_result(c, beta);
  const ScalarType type = sum_type(c);
  add_to(c, beta, [&](const Tensor& sums) {
    multiply_matrix(sums, {a.crow, a.col, a.values.to(type), a.rows, a.columns}, b.to(type), beta, alpha);
  });
}

void sample(const Tensor& values, const CsrMatrix& pattern, const Tensor& a, const Tensor& b, const Scalar& beta,
            const Scalar& alpha) {
  const cudaDataType type = library_type(values.scalar_type(), "sparse_sampled_addmm");
  const BlasScalar keep(beta, values.scalar_type()), factor(alpha, values.scalar_type());
  const SparseHandle handle;
  const DenseMatrixDescriptor left = describe_matrix(a, type), right = describe_transposed(b, type);
  const SparseMatrixDescriptor to = describe(pattern, values, type);
  size_t bytes = 0;
  RUSH_CUDA_CHECK(cusparseSDDMM_bufferSize(handle, kAsItIs, kAsItIs, factor.data(), left, right, keep.data(), to, type,
                                           CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
  const Scratch buffer(bytes);
  RUSH_CUDA_CHECK(cusparseSDDMM(handle, kAsItIs, kAsItIs, factor.data(), left, right, keep.data(), to, type,
                                CUSPARSE_SDDMM_ALG_DEFAULT, buffer.data()));
}

void sparse_sampled_mm(const Tensor& values, const CsrMatrix& pattern, const Tensor& a, const Tensor& b,
                       const Scalar& beta, const Scalar& alpha) {
  if (values.numel() == 0) return;
  if (a.size(1) == 0) return scale_result(values, beta);
  const ScalarType type = sum_type(values);
  add_to(values, beta, [&](const Tensor& sums) { sample(sums, pattern, a.to(type), b.to(type), beta, alpha); });
}

// ---- sparse by sparse ----

// SpGEMM counts with 32 bits.
Tensor narrow(const Tensor& indices) {
  RUSH_CHECK_NOT_IMPLEMENTED(indices.numel() <= std::numeric_limits<int32_t>::max(),
                             "mm: cuSPARSE multiplies sparse matrices of fewer than 2^31 entries, got ",
                             indices.numel());
  return indices.to(kInt32);
}

CsrMatrix narrow(const CsrMatrix& m) {
  RUSH_CHECK_NOT_IMPLEMENTED(std::max(m.rows, m.columns) <= std::numeric_limits<int32_t>::max(),
                             "mm: cuSPARSE multiplies sparse matrices of fewer than 2^31 rows and columns, got (",
                             m.rows, ", ", m.columns, ")");
  return {narrow(m.crow), narrow(m.col), m.values, m.rows, m.columns};
}

// c = a b by the three steps of cuSPARSE's SpGEMM: estimate the work, compute the product, copy it.
void multiply_sparse(CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
  const ScalarType dtype = a.values.scalar_type();
  const cudaDataType type = library_type(dtype, "mm");
  const BlasScalar keep(0, dtype), factor(1, dtype);
  const SparseHandle handle;
  const SparseMatrixDescriptor left = describe(a, a.values, type), right = describe(b, b.values, type);
  const SparseMatrixDescriptor product = describe(c, Tensor(), type);
  const SparseProductDescriptor plan([](cusparseSpGEMMDescr_t* made) { return cusparseSpGEMM_createDescr(made); });
  const auto estimate = [&](size_t* bytes, void* buffer) {
    RUSH_CUDA_CHECK(cusparseSpGEMM_workEstimation(handle, kAsItIs, kAsItIs, factor.data(), left, right, keep.data(),
                                                  product, type, CUSPARSE_SPGEMM_DEFAULT, plan, bytes, buffer));
  };
  const auto compute = [&](size_t* bytes, void* buffer) {
    RUSH_CUDA_CHECK(cusparseSpGEMM_compute(handle, kAsItIs, kAsItIs, factor.data(), left, right, keep.data(), product,
                                           type, CUSPARSE_SPGEMM_DEFAULT, plan, bytes, buffer));
  };
  size_t estimate_bytes = 0, compute_bytes = 0;
  estimate(&estimate_bytes, nullptr);
  const Scratch estimate_buffer(estimate_bytes);
  estimate(&estimate_bytes, estimate_buffer.data());
  compute(&compute_bytes, nullptr);
  const Scratch compute_buffer(compute_bytes);
  compute(&compute_bytes, compute_buffer.data());
  int64_t rows = 0, columns = 0, nnz = 0;
  RUSH_CUDA_CHECK(cusparseSpMatGetSize(product, &rows, &columns, &nnz));
  c.col = rush::detail::empty_contiguous(nnz, kInt32, a.values.device());
  c.values = rush::detail::empty_contiguous(nnz, dtype, a.values.device());
  RUSH_CUDA_CHECK(cusparseCsrSetPointers(product, c.crow.data_ptr(), c.col.data_ptr(), c.values.data_ptr()));
  RUSH_CUDA_CHECK(cusparseSpGEMM_copy(handle, kAsItIs, kAsItIs, factor.data(), left, right, keep.data(), product, type,
                                      CUSPARSE_SPGEMM_DEFAULT, plan));
}

// Sorts the columns of each row in ascending order, which cuSPARSE does not promise.
void sort_columns(CsrMatrix& c) {
  if (c.nnz() < 2) return;
  const Tensor places = native::expand_rows(c.crow, c.nnz()) * c.columns + c.col;
  if (places.slice(0, 1).gt(places.slice(0, 0, -1)).all().item().toBool()) return;
  const Tensor order = ops::argsort(places, 0, false);
  c.col = index_select(c.col, 0, order);
  c.values = index_select(c.values, 0, order);
}

void sparse_matmul(CsrMatrix& c, const CsrMatrix& a, const CsrMatrix& b) {
  check_not_capturing("multiplying two sparse matrices");
  const ScalarType index_type = a.crow.scalar_type(), dtype = a.values.scalar_type();
  const TensorOptions ints = a.crow.options();
  c.rows = a.rows;
  c.columns = b.columns;
  if (a.nnz() == 0 || b.nnz() == 0) {
    c.crow = zeros(a.rows + 1, ints);
    c.col = zeros(0, ints);
    c.values = zeros(0, a.values.options());
    return;
  }
  CsrMatrix left = narrow(a), right = narrow(b);
  left.values = a.values.to(sum_type(a.values));
  right.values = b.values.to(sum_type(b.values));
  c.crow = zeros(a.rows + 1, TensorOptions(kInt32).device(ints.device()));
  multiply_sparse(c, left, right);
  sort_columns(c);
  c.crow = c.crow.to(index_type);
  c.col = c.col.to(index_type);
  c.values = c.values.to(dtype);
}

// A stable sort by columns: the entries of a column keep the order of their rows.
void sparse_transpose(const Tensor& ccol, const Tensor& row, const Tensor& order, const CsrMatrix& a) {
  const auto [columns, by_column] = ops::sort_stable(a.col, true, 0, false);
  order.copy_(by_column);
  row.copy_(index_select(native::expand_rows(a.crow, a.nnz()), 0, by_column));
  ccol.copy_(native::compress_rows(columns.to(kInt64), a.columns));
}

}  // namespace

void register_sparse() {
  kernels::sparse_mm.set(kCUDA, sparse_mm);
  kernels::sparse_sampled_mm.set(kCUDA, sparse_sampled_mm);
  kernels::sparse_matmul.set(kCUDA, sparse_matmul);
  kernels::sparse_transpose.set(kCUDA, sparse_transpose);
  kernels::cslt_compress.set(kCUDA, cslt_compress);
  kernels::cslt_decompress.set(kCUDA, cslt_decompress);
  kernels::cslt_sparse_mm.set(kCUDA, cslt_sparse_mm);
}

}  // namespace rush::cuda
