#include "core/ops/sparse/semi_structured.h"

#include <limits>

#include "core/ops/basic.h"
#include "core/ops/linalg/factors.h"
#include "core/ops/reduce/sort.h"
#include "core/ops/register.h"
#include "core/ops/view/pad.h"

namespace rush {

namespace {

constexpr int64_t kSparseMultiple = 16, kDenseMultiple = 8;

// (m, k) -> (m, k / 4, 4)
Tensor fours_of(const char* op, const Tensor& matrix) {
  RUSH_CHECK_VALUE(matrix.dim() == 2 && matrix.size(1) % 4 == 0, op,
                   ": expected a matrix with a multiple of 4 columns, got shape ", matrix.sizes());
  return matrix.reshape({matrix.size(0), matrix.size(1) / 4, 4});
}

// (m, k / 4), true where more than two are not 0
Tensor overfull_fours(const char* op, const Tensor& matrix) {
  return fours_of(op, matrix.detach()).count_nonzero(-1).gt(2);
}

void check_semi_structured(const char* op, const Tensor& matrix) {
  const Tensor overfull = overfull_fours(op, matrix);
  if (!overfull.any().item<bool>()) return;
  const Tensor first = overfull.nonzero().select(0, 0).cpu();
  const int64_t row = first.select(0, 0).item<int64_t>(), column = 4 * first.select(0, 1).item<int64_t>();
  RUSH_THROW(ValueError, op, ": the matrix is not 2:4 semi-structured: row ", row,
             " has more than two values in columns ", column, " to ", column + 3,
             "; sparse::prune_semi_structured keeps two of each four");
}

void check_multiple(const char* op, const char* what, int64_t size, int64_t multiple) {
  RUSH_CHECK_VALUE(size % multiple == 0, op, ": ", what, " must be a multiple of ", multiple, ", got ", size);
}

void check_same_kind(const char* what, const Tensor& tensor, const Tensor& packed) {
  RUSH_CHECK_TYPE(tensor.scalar_type() == packed.scalar_type(), "_cslt_sparse_mm: dtypes differ: ", what, " is ",
                  tensor.scalar_type(), ", the compressed matrix is ", packed.scalar_type());
  RUSH_CHECK_VALUE(tensor.device() == packed.device(), "_cslt_sparse_mm: devices differ: ", what, " is on ",
                   tensor.device(), ", the compressed matrix is on ", packed.device());
}

void check_compressed(const char* op, const Tensor& packed) {
  RUSH_CHECK_VALUE(packed.dim() == 2 && packed.size(0) > 0 && packed.size(0) % kSparseMultiple == 0, op,
                   ": expected a compressed matrix of ", kSparseMultiple, "n rows, got shape ", packed.sizes());
  RUSH_CHECK_TYPE(packed.is_floating_point(), op, ": not implemented for ", packed.scalar_type());
}

// How many columns, or rows of what is transposed, a dense matrix lacks of the multiple that it must have.
int64_t missing_of(int64_t n) { return (kDenseMultiple - n % kDenseMultiple) % kDenseMultiple; }

int32_t as_int32(const char* what, int64_t number) {
  RUSH_CHECK_VALUE(number >= -1 && number <= std::numeric_limits<int32_t>::max(), "_cslt_sparse_mm: ", what,
                   " is out of range: ", number);
  return static_cast<int32_t>(number);
}

// Checks alpha, a number or one number for each row, and stores it in the product.
void set_alpha(SemiStructuredProduct& product, const Tensor& alpha, int64_t rows) {
  RUSH_CHECK_TYPE(alpha.scalar_type() == kFloat32, "_cslt_sparse_mm: alpha must be float32, not ", alpha.scalar_type());
  if (alpha.numel() == 1) {
    product.scale = alpha.item<float>();
    return;
  }
  RUSH_CHECK_VALUE(alpha.dim() == 1 && alpha.size(0) == rows, "_cslt_sparse_mm: expected alpha of shape (1) or (", rows,
                   "), got ", alpha.sizes());
  RUSH_CHECK_VALUE(alpha.device() == product.packed.device(), "_cslt_sparse_mm: devices differ: alpha is on ",
                   alpha.device(), ", the compressed matrix is on ", product.packed.device());
  product.alpha = alpha.contiguous();
}

}  // namespace

namespace native {

static Tensor _cslt_compress(const Tensor& input) {
  constexpr const char* op = "_cslt_compress";
  RUSH_CHECK_VALUE(input.dim() == 2, op, ": expected a matrix, got shape ", input.sizes());
  RUSH_CHECK_TYPE(input.is_floating_point(), op, ": not implemented for ", input.scalar_type());
  RUSH_CHECK_VALUE(input.numel() > 0, op, ": the matrix is empty: ", input.sizes());
  RUSH_CHECK_NOT_IMPLEMENTED(!input.is_meta(), op, ": a tensor on meta has no values");
  check_multiple(op, "the number of rows", input.size(0), kSparseMultiple);
  check_multiple(op, "the number of columns", input.size(1), kSparseMultiple);
  check_semi_structured(op, input);
  Tensor packed;
  kernels::cslt_compress(input.device().type, packed, input.contiguous());
  return packed;
}

static Tensor _cslt_decompress(const Tensor& packed, int64_t columns) {
  constexpr const char* op = "_cslt_decompress";
  check_compressed(op, packed);
  RUSH_CHECK_VALUE(columns > 0, op, ": expected a positive number of columns, got ", columns);
  check_multiple(op, "the number of columns", columns, kSparseMultiple);
  Tensor dense = detail::empty_contiguous({packed.size(0), columns}, packed.scalar_type(), packed.device());
  kernels::cslt_decompress(packed.device().type, dense, packed.contiguous());
  return dense;
}

static Tensor _cslt_sparse_mm(const Tensor& packed, const Tensor& dense, const std::optional<Tensor>& bias,
                              const std::optional<Tensor>& alpha, std::optional<ScalarType> out_dtype,
                              bool transpose_result, int64_t alg_id, int64_t split_k, int64_t split_k_mode) {
  constexpr const char* op = "_cslt_sparse_mm";
  check_compressed(op, packed);
  RUSH_CHECK_VALUE(dense.dim() == 2 && dense.size(0) > 0, op, ": expected a dense matrix, got shape ", dense.sizes());
  check_same_kind("the dense matrix", dense, packed);
  check_multiple(op, "the number of rows of the dense matrix", dense.size(0), kSparseMultiple);
  check_multiple(op, "the number of columns of the dense matrix", dense.size(1), kDenseMultiple);
  const int64_t m = packed.size(0), n = dense.size(1);
  RUSH_CHECK_NOT_IMPLEMENTED(!out_dtype || *out_dtype == packed.scalar_type(), op, ": out_dtype ", *out_dtype,
                             " is not implemented for factors of ", packed.scalar_type());
  SemiStructuredProduct product;
  product.packed = packed.contiguous();
  if (given(bias)) {
    check_same_kind("the bias", *bias, packed);
    RUSH_CHECK_VALUE(bias->dim() == 1 && bias->size(0) == m, op, ": expected a bias of shape (", m, "), got ",
                     bias->sizes());
    product.bias = bias->contiguous();
  }
  product.algorithm = as_int32("alg_id", alg_id);
  product.split_k = as_int32("split_k", split_k);
  product.split_k_mode = as_int32("split_k_mode", split_k_mode);
  if (given(alpha)) set_alpha(product, *alpha, m);
  product.result_transposed = transpose_result;
  product.dense_transposed = !dense.is_contiguous() && dense.t().is_contiguous();
  product.dense = product.dense_transposed ? dense.t() : dense.contiguous();
  Tensor out = detail::empty_contiguous(transpose_result ? DimVector{n, m} : DimVector{m, n}, packed.scalar_type(),
                                        packed.device());
  if (n > 0) kernels::cslt_sparse_mm(packed.device().type, out, product);
  return out;
}

}  // namespace native

namespace sparse {

bool is_semi_structured(const Tensor& matrix) {
  return !overfull_fours("is_semi_structured", matrix).any().item<bool>();
}

Tensor prune_semi_structured(const Tensor& matrix) {
  const Tensor fours = fours_of("prune_semi_structured", matrix);
  // A stable sort leaves those further left in front of their equals.
  const Tensor largest = argsort(fours.detach().abs(), /*stable=*/true, -1, /*descending=*/true).slice(-1, 0, 2);
  const Tensor dropped = ones(fours.sizes(), TensorOptions(kBool).device(matrix.device())).scatter(-1, largest, false);
  return fours.masked_fill(dropped, 0).view(matrix.sizes());
}

SparseSemiStructuredTensor to_sparse_semi_structured(const Tensor& dense) {
  return {_cslt_compress(dense.detach()), dense.size(1)};
}

Tensor mm(const SparseSemiStructuredTensor& self, const Tensor& mat2) {
  RUSH_CHECK_VALUE(mat2.dim() == 2 && mat2.size(0) == self.columns(), "mm: mat1 and mat2 shapes cannot be multiplied (",
                   self.rows(), "x", self.columns(), " and ", native::product_text(mat2.sizes()), ")");
  const int64_t n = mat2.size(1), missing = missing_of(n);
  if (missing == 0) return _cslt_sparse_mm(self.packed(), mat2);
  return _cslt_sparse_mm(self.packed(), constant_pad_nd(mat2, {0, missing})).slice(1, 0, n);
}

Tensor linear(const Tensor& input, const SparseSemiStructuredTensor& weight, const std::optional<Tensor>& bias) {
  RUSH_CHECK_VALUE(input.dim() >= 1 && input.size(-1) == weight.columns(),
                   "linear: mat1 and mat2 shapes cannot be multiplied (", native::product_text(input.sizes()), " and ",
                   weight.columns(), "x", weight.rows(), ")");
  DimVector sizes(input.sizes());
  sizes.back() = weight.rows();
  const int64_t n = input.numel() / weight.columns(), missing = missing_of(n);
  Tensor rows = input.reshape({n, weight.columns()});
  if (missing > 0) rows = constant_pad_nd(rows, {0, 0, 0, missing});
  // weight input^T, written transposed: (N, m)
  const Tensor out = _cslt_sparse_mm(weight.packed(), rows.t(), bias, std::nullopt, std::nullopt, true);
  return (missing > 0 ? out.slice(0, 0, n) : out).view(sizes);
}

}  // namespace sparse

void register_semi_structured_ops(Registry& r) {
  r.native(ops::_cslt_compress, native::_cslt_compress);
  r.native(ops::_cslt_decompress, native::_cslt_decompress);
  r.native(ops::_cslt_sparse_mm, native::_cslt_sparse_mm);
}

}  // namespace rush
