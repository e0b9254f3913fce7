#include "backends/cuda/blas/operand.h"

#include "core/device/context.h"

namespace rush::cuda {

cudaDataType library_type(ScalarType dtype, const char* op) {
  switch (dtype) {
    case kFloat16: return CUDA_R_16F;
    case kBFloat16: return CUDA_R_16BF;
    case kFloat32: return CUDA_R_32F;
    case kFloat64: return CUDA_R_64F;
    case kComplex64: return CUDA_C_32F;
    case kComplex128: return CUDA_C_64F;
    default: RUSH_THROW(NotImplementedError, op, ": not implemented for ", dtype);
  }
}

BlasScalar::BlasScalar(const Scalar& value, ScalarType dtype) {
  if (dtype == kComplex64) {
    const auto number = value.to<complex<float>>();
    value_.complex_parts[0] = number.real();
    value_.complex_parts[1] = number.imag();
  } else if (dtype == kComplex128) {
    const auto number = value.to<complex<double>>();
    value_.complex_parts64[0] = number.real();
    value_.complex_parts64[1] = number.imag();
  } else if (dtype == kFloat64) {
    value_.real64 = value.toDouble();
  } else {
    value_.real = value.to<float>();
  }
}

cublasComputeType_t compute_type(ScalarType dtype) {
  if (dtype == kFloat64 || dtype == kComplex128) return CUBLAS_COMPUTE_64F;
  const bool full = dtype == kFloat32 || dtype == kComplex64;
  return full && globalContext().allowTF32CuBLAS() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

bool sums_in_full(ScalarType dtype) {
  const Context& context = globalContext();
  return (dtype == kFloat16 && !context.allowFP16ReductionCuBLAS()) ||
         (dtype == kBFloat16 && !context.allowBF16ReductionCuBLAS());
}

}  // namespace rush::cuda
