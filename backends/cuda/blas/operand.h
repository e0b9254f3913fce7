// How cuBLAS, which knows only column-major matrices, reads a strided matrix.
#pragma once
#include <cublas_v2.h>
#include <library_types.h>

#include <algorithm>
#include <optional>

#include "core/tensor.h"

namespace rush::cuda {

// A strided batch of matrices (B, rows, columns).
struct Matrices {
  void* data;
  int64_t rows, columns;
  int64_t row_stride, column_stride, batch_stride;

  explicit Matrices(const Tensor& t)
      : data(t.data_ptr()),
        rows(t.sizes()[1]),
        columns(t.sizes()[2]),
        row_stride(t.strides()[1]),
        column_stride(t.strides()[2]),
        batch_stride(t.strides()[0]) {}

  Matrices transposed() const {
    Matrices t = *this;
    std::swap(t.rows, t.columns);
    std::swap(t.row_stride, t.column_stride);
    return t;
  }
  // The leading dimension of the matrix, read as column-major; nothing if its strides do not fit.
  std::optional<int64_t> leading() const {
    if (rows > 1 && row_stride != 1) return std::nullopt;
    if (columns == 1) return std::max<int64_t>(rows, 1);
    if (column_stride < rows) return std::nullopt;
    return column_stride;
  }
  bool readable() const { return leading() || transposed().leading(); }
};

// An operand of a call: the matrix is op(data) with leading dimension ld.
struct Operand {
  const void* data;
  cublasOperation_t op;
  int64_t ld, batch_stride;

  // cuBLAS must be able to read `m`.
  explicit Operand(const Matrices& m) : data(m.data), batch_stride(m.batch_stride) {
    const auto straight = m.leading();
    op = straight ? CUBLAS_OP_N : CUBLAS_OP_T;
    ld = straight ? *straight : *m.transposed().leading();
  }
};

// The dtype's name in NVIDIA's libraries. Throws NotImplementedError naming `op` for integers.
cudaDataType library_type(ScalarType dtype, const char* op);

// alpha or beta in the type that cuBLAS reads for products of `dtype`: float for 16-bit numbers. It has the alignment
// of cuDoubleComplex, because cuBLAS loads it by instructions that fault at other addresses.
class BlasScalar {
 public:
  BlasScalar(const Scalar& value, ScalarType dtype);
  const void* data() const { return &value_; }

 private:
  union alignas(cuDoubleComplex) Value {
    float real;
    double real64;
    float complex_parts[2];
    double complex_parts64[2];
  } value_;
};

// The accumulator's type for products of `dtype`, as the switches of globalContext() say.
cublasComputeType_t compute_type(ScalarType dtype);
// Whether the switches forbid that 16-bit partial sums of `dtype` are rounded.
bool sums_in_full(ScalarType dtype);

}  // namespace rush::cuda
