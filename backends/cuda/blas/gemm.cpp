// Matrix products by cuBLAS.
#include "backends/cuda/blas/gemm.h"

#include "backends/cuda/blas/epilogue.h"
#include "backends/cuda/blas/handle.h"
#include "backends/cuda/blas/operand.h"
#include "backends/cuda/kernels/linalg/gemm_integer.h"
#include "backends/cuda/memory/mark_written.h"
#include "backends/cuda/register.h"
#include "core/device/context.h"
#include "core/ops/factory/factories.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/linear.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// c = beta c + alpha a b for matrices that cuBLAS can read, c column-major.
struct Product {
  Matrices a, b, c;
  ScalarType dtype;      // of a and b
  ScalarType sum_dtype;  // of c
  BlasScalar beta, alpha;
};

// Row-major matrices are the transposes of column-major ones: C^T = B^T A^T.
Product column_major(const Product& p) {
  const bool transposed = p.c.columns == 1 ? !p.c.leading() : p.c.transposed().leading().has_value();
  if (!transposed) return p;
  return {p.b.transposed(), p.a.transposed(), p.c.transposed(), p.dtype, p.sum_dtype, p.beta, p.alpha};
}

void multiply(const Product& p, int64_t batch, Blas& blas) {
  const Operand a(p.a), b(p.b);
  const cudaDataType type = library_type(p.dtype, "gemm"), sum_type = library_type(p.sum_dtype, "gemm");
  const int64_t m = p.c.rows, n = p.c.columns, k = p.a.columns, ldc = *p.c.leading();
  blas.set_math(sums_in_full(p.dtype) ? CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION : CUBLAS_DEFAULT_MATH);
  if (batch == 1) {
    RUSH_CUDA_CHECK(cublasGemmEx_64(blas.handle(), a.op, b.op, m, n, k, p.alpha.data(), a.data, type, a.ld, b.data,
                                    type, b.ld, p.beta.data(), p.c.data, sum_type, ldc, compute_type(p.dtype),
                                    CUBLAS_GEMM_DEFAULT));
  } else {
    RUSH_CUDA_CHECK(cublasGemmStridedBatchedEx_64(blas.handle(), a.op, b.op, m, n, k, p.alpha.data(), a.data, type,
                                                  a.ld, a.batch_stride, b.data, type, b.ld, b.batch_stride,
                                                  p.beta.data(), p.c.data, sum_type, ldc, p.c.batch_stride, batch,
                                                  compute_type(p.dtype), CUBLAS_GEMM_DEFAULT));
  }
}

// cuBLAS's matrix-vector products differ only in their element types.
#define RUSH_GEMV(function, type)                                                                               \
  RUSH_CUDA_CHECK(function(handle, a.op, straight ? p.a.rows : p.a.columns, straight ? p.a.columns : p.a.rows,  \
                           static_cast<const type*>(p.alpha.data()), static_cast<const type*>(a.data), a.ld,    \
                           static_cast<const type*>(p.b.data), step_x, static_cast<const type*>(p.beta.data()), \
                           static_cast<type*>(p.c.data), step_y))

// c (n, 1) = beta c + alpha a (n, k) b (k, 1). Returns false for 16-bit numbers: cuBLAS has no such function for them.
bool multiply_vector(const Product& p, Blas& blas) {
  const Operand a(p.a);
  const bool straight = a.op == CUBLAS_OP_N;
  const int64_t step_x = p.b.rows == 1 ? 1 : p.b.row_stride, step_y = p.c.rows == 1 ? 1 : p.c.row_stride;
  if (step_x <= 0 || step_y <= 0) return false;
  const cublasHandle_t handle = blas.handle();
  switch (p.dtype) {
    case kFloat32: RUSH_GEMV(cublasSgemv_64, float); return true;
    case kFloat64: RUSH_GEMV(cublasDgemv_64, double); return true;
    case kComplex64: RUSH_GEMV(cublasCgemv_64, cuComplex); return true;
    case kComplex128: RUSH_GEMV(cublasZgemv_64, cuDoubleComplex); return true;
    default: return false;
  }
}
#undef RUSH_GEMV

// c (1, 1) = a (1, k) b (k, 1). cuBLAS leaves the sum on the device.
void multiply_vectors(const Product& p, Blas& blas) {
  const cudaDataType type = library_type(p.dtype, "dot");
  const cudaDataType sum = type == CUDA_R_16F || type == CUDA_R_16BF ? CUDA_R_32F : type;
  const int64_t k = p.a.columns;
  RUSH_CUDA_CHECK(cublasSetPointerMode(blas.handle(), CUBLAS_POINTER_MODE_DEVICE));
  const cublasStatus_t status = cublasDotEx_64(blas.handle(), k, p.a.data, type, k == 1 ? 1 : p.a.column_stride,
                                               p.b.data, type, k == 1 ? 1 : p.b.row_stride, p.c.data, type, sum);
  RUSH_CUDA_CHECK(cublasSetPointerMode(blas.handle(), CUBLAS_POINTER_MODE_HOST));
  if (status != CUBLAS_STATUS_SUCCESS) throw_error(status, "cublasDotEx_64");
}

// The operand itself if cuBLAS can read its strides, otherwise a row-major copy.
Tensor readable(const Tensor& t) { return Matrices(t).readable() ? t : native::clone_contiguous(t); }

void gemm_into(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  const ScalarType dtype = a.scalar_type(), sum_dtype = c.scalar_type();
  const Product given{Matrices(a), Matrices(b), Matrices(c), dtype, sum_dtype, {beta, dtype}, {alpha, dtype}};
  if (c.device().is_meta()) return estimate_blas_workspace();
  const int64_t batch = c.sizes()[0];
  Blas blas;
  const bool is_dot = batch == 1 && given.c.rows == 1 && given.c.columns == 1 && dtype == sum_dtype;
  if (is_dot && beta.equal(0) && alpha.equal(1)) {
    return multiply_vectors(given, blas);
  }
  const Product p = column_major(given);
  if (batch == 1 && p.c.columns == 1 && multiply_vector(p, blas)) return;
  if (batch == 1 && p.c.rows == 1) {
    const Product turned{p.b.transposed(), p.a.transposed(), p.c.transposed(), dtype, sum_dtype, p.beta, p.alpha};
    if (multiply_vector(turned, blas)) return;
  }
  multiply(p, batch, blas);
}

// Note [Padded products]
// cuBLAS's fast kernels take 16 bytes at a time: rows begin at multiples of that, and so many numbers make up a row of
// the result and the depth. Where a size is none of those, like that of GPT-2's 50,257 tokens, it takes kernels of less
// than half the speed. A product in which each number is used often is then made of copies that zeros make up to such
// sizes. PyTorch leaves that to torch.compile.
constexpr int64_t kUsesOfCopy = 512;

class PaddedProduct {
 public:
  PaddedProduct(const Tensor& c, const Tensor& a, const Tensor& b)
      : c_(c), a_(a), b_(b), lanes_(16 / c.element_size()), is_by_columns_(Matrices(c).leading().has_value()) {
    const bool is_for_tensor_cores = c.scalar_type() == kFloat16 || c.scalar_type() == kBFloat16 ||
                                     (c.scalar_type() == kFloat32 && globalContext().allowTF32CuBLAS());
    if (!is_for_tensor_cores || c.scalar_type() != a.scalar_type() || c.sizes()[0] != 1 || !Matrices(c).readable())
      return;
    const int64_t m = c.sizes()[1], n = c.sizes()[2], k = a.sizes()[2];
    if (std::min({m, n, k}) < kUsesOfCopy) return;
    rows_ = is_by_columns_ ? whole(m) : m;
    columns_ = is_by_columns_ ? n : whole(n);
    depth_ = whole(k);
    pays_ =
        rows_ != m || columns_ != n || depth_ != k || !has_whole_rows(c) || !has_whole_rows(a) || !has_whole_rows(b);
  }

  bool pays() const { return pays_; }
  Tensor left() const { return padded(a_, rows_, depth_); }
  Tensor right() const { return padded(b_, depth_, columns_); }
  // Room for the result, of which c is to become the first elements.
  Tensor result() const { return room(c_, rows_, columns_, is_by_columns_); }
  Tensor used(const Tensor& result) const { return part(result, c_.sizes()[1], c_.sizes()[2]); }
  // A number for each column of c, for those of the result.
  Tensor row(const Tensor& bias) const {
    return padded(native::contiguous(bias).view({1, 1, c_.sizes()[2]}), 1, columns_).view(columns_);
  }

 private:
  int64_t whole(int64_t size) const { return (size + lanes_ - 1) / lanes_ * lanes_; }
  bool has_whole_rows(const Tensor& t) const {
    const Matrices m(t);
    const std::optional<int64_t> leading = m.leading() ? m.leading() : m.transposed().leading();
    return leading && *leading % lanes_ == 0;
  }
  static Tensor part(const Tensor& t, int64_t rows, int64_t columns) {
    return t.narrow(1, 0, rows).narrow(2, 0, columns);
  }
  Tensor room(const Tensor& like, int64_t rows, int64_t columns, bool by_columns) const {
    if (by_columns) return room(like, columns, rows, false).transpose(1, 2);
    const Tensor all = detail::empty_contiguous({1, rows, whole(columns)}, like.scalar_type(), like.device());
    return all.narrow(2, 0, columns);
  }
  // The matrix itself where it is of these sizes, and cuBLAS can read its rows.
  Tensor padded(const Tensor& t, int64_t rows, int64_t columns) const {
    const int64_t own_rows = t.sizes()[1], own_columns = t.sizes()[2];
    if (rows == own_rows && columns == own_columns && has_whole_rows(t)) return t;
    const Tensor copy = room(t, rows, columns, t.strides()[1] == 1);
    Tensor own = part(copy, own_rows, own_columns);
    native::copy_(own, t, false);
    if (rows > own_rows) copy.narrow(1, own_rows, rows - own_rows).zero_();
    if (columns > own_columns) copy.narrow(2, own_columns, columns - own_columns).zero_();
    return copy;
  }

  const Tensor &c_, &a_, &b_;
  const int64_t lanes_;
  const bool is_by_columns_;
  int64_t rows_ = 0, columns_ = 0, depth_ = 0;
  bool pays_ = false;
};

}  // namespace

void scale_result(const Tensor& c, const Scalar& beta) {
  if (beta.equal(0)) {
    c.zero_();
  } else if (!beta.equal(1)) {
    c.mul_(beta);
  }
}

void gemm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  RUSH_CHECK_NOT_IMPLEMENTED(c.scalar_type() != kBool, "gemm: not implemented for bool");
  const bool is_integer = is_integral(c.scalar_type(), true);
  if (c.numel() == 0 || (is_integer && c.device().is_meta())) return;
  if (is_integer) return gemm_integer(c, a, b, beta, alpha);
  if (a.sizes()[2] == 0) return scale_result(c, beta);
  Tensor target = c;
  if (const PaddedProduct padded(c, a, b); padded.pays()) {
    const Tensor out = padded.result();
    Tensor used = padded.used(out);
    if (!beta.equal(0)) native::copy_(used, c, false);
    gemm_into(out, padded.left(), padded.right(), beta, alpha);
    mark_written(out);
    native::copy_(target, used, false);
    return;
  }
  const Tensor left = readable(a), right = readable(b);
  if (Matrices(c).readable()) {
    gemm_into(c, left, right, beta, alpha);
    return mark_written(c);
  }
  Tensor out =
      beta.equal(0) ? detail::empty_contiguous(c.sizes(), c.scalar_type(), c.device()) : native::clone_contiguous(c);
  gemm_into(out, left, right, beta, alpha);
  mark_written(out);
  native::copy_(target, out, false);
}

namespace {

// c = a b + bias. If cuBLASLt has a kernel, it adds the bias; otherwise c is set to the bias first.
void gemm_bias(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias) {
  if (c.numel() == 0) return;
  Tensor target = c;
  const bool is_row = bias.dim() == 1 && bias.numel() == c.sizes()[2];
  if (const PaddedProduct padded(c, a, b); is_row && padded.pays()) {
    const Tensor out = padded.result(), left = padded.left(), right = padded.right(), row = padded.row(bias);
    if (multiply_with_epilogue({out, left, right, Epilogue::Bias, row, Tensor()})) {
      native::copy_(target, padded.used(out), false);
      return;
    }
  } else if (multiply_with_epilogue({c, a, b, Epilogue::Bias, bias, Tensor()})) {
    return;
  }
  native::copy_(target, bias, false);
  gemm(c, a, b, 1, 1);
}

}  // namespace

void register_matmul() {
  kernels::gemm.set_by_parts(kCUDA, gemm);
  kernels::gemm_bias.set_by_parts(kCUDA, gemm_bias);
}

}  // namespace rush::cuda
