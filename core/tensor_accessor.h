// TensorAccessor: reads and writes single elements of a tensor on the CPU, without the cost of operators.
#pragma once
#include "core/tensor.h"

namespace rush {

/// A view with N dimensions of type T. It owns nothing: the tensor must outlive it. at::TensorAccessor.
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  /// Along the first dimension, unchecked: the element itself if there is no other.
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) {
      return (data_[i * strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
  }
  T* data() const { return data_; }
  int64_t size(int64_t dim) const { return sizes_[dim]; }
  int64_t stride(int64_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  static_assert(N > 0, "accessor: a tensor without dimensions is read with item()");
  RUSH_CHECK_VALUE(dim() == static_cast<int64_t>(N), "accessor: expected ", N, " dimensions, the tensor has ", dim());
  RUSH_CHECK_VALUE(device().is_cpu(), "accessor: expected a tensor on the CPU, got one on ", device());
  return {const_cast<T*>(data_ptr<std::remove_const_t<T>>()), sizes().data(), strides().data()};
}

}  // namespace rush
