// cuBLAS, for the programs that compare the speed of the labs' kernels with it.
#pragma once
#include <cublas_v2.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

namespace rush::labs {

inline void check_blas(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}

struct DestroyBlas {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
using BlasHandle = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, DestroyBlas>;

inline BlasHandle create_blas() {
  cublasHandle_t handle = nullptr;
  check_blas(cublasCreate(&handle));
  return BlasHandle(handle);
}

}  // namespace rush::labs
