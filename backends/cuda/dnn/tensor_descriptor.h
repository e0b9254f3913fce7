// cuDNN's description of a tensor for its older functions.
#pragma once
#include <cudnn.h>

#include <initializer_list>

#include "backends/cuda/dnn/handle.h"

namespace rush::cuda {

class TensorDescriptor {
 public:
  // Strides count elements. At least three dimensions.
  TensorDescriptor(cudnnDataType_t type, std::initializer_list<int> dims, std::initializer_list<int> strides) {
    RUSH_CUDA_CHECK(cudnnCreateTensorDescriptor(&descriptor_));
    const cudnnStatus_t status =
        cudnnSetTensorNdDescriptor(descriptor_, type, static_cast<int>(dims.size()), dims.begin(), strides.begin());
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudnnDestroyTensorDescriptor(descriptor_);
    throw_error(status, "cudnnSetTensorNdDescriptor");
  }
  ~TensorDescriptor() { cudnnDestroyTensorDescriptor(descriptor_); }
  TensorDescriptor(const TensorDescriptor&) = delete;

  operator cudnnTensorDescriptor_t() const { return descriptor_; }

 private:
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

}  // namespace rush::cuda
