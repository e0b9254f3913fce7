// 2:4 semi-structured matrices: of four neighbours in a row at most two are not 0. The sparse tensor cores of NVIDIA's
// GPUs do twice the arithmetic with them. torch.sparse.to_sparse_semi_structured,
// https://pytorch.org/docs/stable/sparse.html#sparse-semi-structured-tensors
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

// Note [Semi-structured matrices]
// A matrix is 2:4 semi-structured where of the columns 4j to 4j + 3 of each row at most two are not 0. Compressed it is
// one matrix of the same dtype and as many rows: two values of each four, and which two they were. How they lie inside
// is the business of the device that compressed it. On CUDA it is cuSPARSELt's, which says nothing about it: 9/16 of
// the dense size, and some room at the end. On the CPU a row is its values, then a byte for each four columns that has
// the two places, 2 bits each: 5/8 of the dense size in 16 bits. The shapes always differ as well, and a compressed
// matrix that was copied to another kind of device, in a checkpoint or otherwise, is refused there instead of being
// read as something else.
//
// On CUDA: float16 and bfloat16, a GPU of compute capability 8.0 or newer, and a build with cuSPARSELt; else
// NotImplementedError. On the CPU, where it saves memory and no time, float32 and float64 as well. On all devices rows
// and columns of the sparse matrix are multiples of 16 and the dense one has a multiple of 8 columns, which are the
// limits of cuSPARSELt; the functions of namespace sparse lift the last one.
//
// There is no gradient by a compressed matrix: one that requires it is a NotImplementedError. The gradient by the dense
// operand is a dense product with the matrix decompressed. What the matrix has of infinity and NaN, it keeps in
// products; but decompressing on CUDA is a product with the identity, where they spread over their row.

namespace ops {
inline constinit Op<Tensor(const Tensor&)> _cslt_compress{"aten::_cslt_compress(Tensor input) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, const std::optional<Tensor>&,
                           std::optional<ScalarType>, bool, int64_t, int64_t, int64_t)>
    _cslt_sparse_mm{
        "aten::_cslt_sparse_mm(Tensor compressed_A, Tensor dense_B, Tensor? bias=None, Tensor? alpha=None, ScalarType? "
        "out_dtype=None, bool transpose_result=False, int alg_id=0, int split_k=1, int split_k_mode=-1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> _cslt_decompress{
    "rush::_cslt_decompress(Tensor compressed_A, int columns) -> Tensor"};
}  // namespace ops

/// A 2:4 matrix (m, k), compressed: (m, words). Throws ValueError unless it is 2:4, which asks the GPU and waits for
/// it, and m and k are multiples of 16.
inline Tensor _cslt_compress(const Tensor& input) { return ops::_cslt_compress(input); }
/// alpha A B + bias for a compressed A (m, words) and a dense B (k, n), n a multiple of 8: (m, n), or (n, m) if
/// `transpose_result`. B is read where it lies if it or its transposed is contiguous. `bias` (m) is added to each
/// column. `alpha` is float32: one number, which is waited for, or one for each row (m). `out_dtype` can only be B's.
/// `alg_id`, `split_k` and `split_k_mode` choose among cuSPARSELt's kernels and mean nothing on the CPU. Sums are in
/// float32, for float64 in float64; the CPU rounds them once.
inline Tensor _cslt_sparse_mm(const Tensor& compressed_A, const Tensor& dense_B,
                              const std::optional<Tensor>& bias = std::nullopt,
                              const std::optional<Tensor>& alpha = std::nullopt,
                              std::optional<ScalarType> out_dtype = std::nullopt, bool transpose_result = false,
                              int64_t alg_id = 0, int64_t split_k = 1, int64_t split_k_mode = -1) {
  return ops::_cslt_sparse_mm(compressed_A, dense_B, bias, alpha, out_dtype, transpose_result, alg_id, split_k,
                              split_k_mode);
}
/// The matrix (m, columns) that was compressed.
inline Tensor _cslt_decompress(const Tensor& compressed_A, int64_t columns) {
  return ops::_cslt_decompress(compressed_A, columns);
}

namespace sparse {

/// A 2:4 matrix, compressed for the device that it is on. torch.sparse.SparseSemiStructuredTensor; no Tensor itself.
class SparseSemiStructuredTensor {
 public:
  /// From what _cslt_compress returned for a matrix of so many columns.
  SparseSemiStructuredTensor(Tensor packed, int64_t columns) : packed_(std::move(packed)), columns_(columns) {}

  int64_t rows() const { return packed_.size(0); }                         // m
  int64_t columns() const { return columns_; }                             // k
  ScalarType scalar_type() const { return packed_.scalar_type(); }         // of the matrix's numbers
  Device device() const { return packed_.device(); }                       // that it was compressed for
  const Tensor& packed() const { return packed_; }                         // (m, words)
  Tensor to_dense() const { return _cslt_decompress(packed_, columns_); }  // (m, k)

 private:
  Tensor packed_;
  int64_t columns_;
};

/// Whether of each four columns 4j to 4j + 3 of a matrix at most two are not 0. Throws ValueError unless there are a
/// multiple of 4 columns. Waits for the GPU.
bool is_semi_structured(const Tensor& matrix);
/// The matrix with the two largest magnitudes of each four columns kept and 0 elsewhere; of equal ones those further
/// left. NaN counts as largest. The gradient is that of what was kept. Throws ValueError unless it is a matrix with a
/// multiple of 4 columns.
Tensor prune_semi_structured(const Tensor& matrix);
/// Compresses a 2:4 matrix, as _cslt_compress does, outside of autograd: no gradient reaches `dense`.
SparseSemiStructuredTensor to_sparse_semi_structured(const Tensor& dense);
/// (m, k) x (k, n) -> (m, n), for any n.
Tensor mm(const SparseSemiStructuredTensor& self, const Tensor& mat2);
/// input weight^T + bias: (..., k) x (m, k) [+ (m)] -> (..., m). Throws ValueError on shapes and devices that do not
/// fit and TypeError when the dtypes differ.
Tensor linear(const Tensor& input, const SparseSemiStructuredTensor& weight,
              const std::optional<Tensor>& bias = std::nullopt);

}  // namespace sparse

/// alpha A B + bias. None of the sizes is 0.
struct SemiStructuredProduct {
  Tensor packed;  // A (m, words), contiguous
  Tensor dense;   // B (k, n), or its transposed (n, k); contiguous
  bool dense_transposed = false;
  bool result_transposed = false;
  Tensor bias;      // undefined, or (m), contiguous
  Tensor alpha;     // undefined, or float32 (m), contiguous
  float scale = 1;  // alpha, where that is undefined
  int32_t algorithm = 0, split_k = 1, split_k_mode = -1;

  int64_t depth() const { return dense.size(dense_transposed ? 1 : 0); }    // k
  int64_t columns() const { return dense.size(dense_transposed ? 0 : 1); }  // n

  template <class F>
  void each_tensor(const F& f) {  // see core/dispatch/cpu_fallback.h
    for (Tensor* t : {&packed, &dense, &bias, &alpha}) f(*t);
  }
};

namespace kernels {
// Makes `packed` of a contiguous 2:4 matrix.
inline constinit Kernel<void(Tensor& packed, const Tensor& dense)> cslt_compress{"_cslt_compress"};
// Writes `dense` (m, k), contiguous.
inline constinit Kernel<void(const Tensor& dense, const Tensor& packed)> cslt_decompress{"_cslt_decompress"};
// Writes `out` (m, n), or (n, m) if `result_transposed`; contiguous. Throws ValueError before it writes unless `packed`
// has the shape that it would have here.
inline constinit Kernel<void(const Tensor& out, const SemiStructuredProduct& product)> cslt_sparse_mm{
    "_cslt_sparse_mm"};
}  // namespace kernels

}  // namespace rush
