// TensorAccessor: reads and writes single elements of a tensor on the CPU, without the cost of operators.
#pragma once
#include <utility>

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

/// A view with N dimensions of type T that holds its sizes and strides, so that kernels take it by value. It owns no
/// memory: the tensor must outlive it. at::GenericPackedTensorAccessor.
template <class T, size_t N, class Index>
class PackedAccessor {
 public:
  PackedAccessor(T* data, const Index* sizes, const Index* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = sizes[i];
      strides_[i] = strides[i];
    }
  }

  /// As TensorAccessor's.
  RUSH_HD decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return (data_[i * strides_[0]]);
    } else {
      return PackedAccessor<T, N - 1, Index>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
  }
  RUSH_HD T* data() const { return data_; }
  RUSH_HD Index size(size_t dim) const { return sizes_[dim]; }
  RUSH_HD Index stride(size_t dim) const { return strides_[dim]; }
  /// With two dimensions exchanged. Throws IndexError.
  PackedAccessor transpose(Index dim0, Index dim1) const {
    for (const Index dim : {dim0, dim1}) {
      RUSH_CHECK_INDEX(dim >= 0 && dim < static_cast<Index>(N), "transpose: there is no dimension ", dim, " of ", N);
    }
    PackedAccessor exchanged = *this;
    std::swap(exchanged.sizes_[dim0], exchanged.sizes_[dim1]);
    std::swap(exchanged.strides_[dim0], exchanged.strides_[dim1]);
    return exchanged;
  }

 private:
  T* data_;
  Index sizes_[N], strides_[N];
};
/// What libtorch's accessors are told of their pointer: whether nothing else points there. Ours are the same for both.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict;
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedAccessor<T, N, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedAccessor<T, N, int64_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
using GenericPackedTensorAccessor = PackedAccessor<T, N, Index>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class Index = int64_t>
using PackedTensorAccessor = PackedAccessor<T, N, Index>;

template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  static_assert(N > 0, "accessor: a tensor without dimensions is read with item()");
  RUSH_CHECK_VALUE(dim() == static_cast<int64_t>(N), "accessor: TensorAccessor expected ", N, " dims but tensor has ",
                   dim());
  RUSH_CHECK_VALUE(device().is_cpu(), "accessor: expected a tensor on the CPU, got one on ", device());
  return {const_cast<T*>(data_ptr<std::remove_const_t<T>>()), sizes().data(), strides().data()};
}

template <class T, size_t N>
PackedAccessor<T, N, int64_t> Tensor::packed_accessor64() const {
  RUSH_CHECK_VALUE(dim() == static_cast<int64_t>(N), "packed_accessor64: TensorAccessor expected ", N,
                   " dims but tensor has ", dim());
  return {data_ptr<std::remove_const_t<T>>(), sizes().data(), strides().data()};
}

template <class T, size_t N>
PackedAccessor<T, N, int32_t> Tensor::packed_accessor32() const {
  RUSH_CHECK_VALUE(dim() == static_cast<int64_t>(N), "packed_accessor32: TensorAccessor expected ", N,
                   " dims but tensor has ", dim());
  RUSH_CHECK_VALUE(storage_extent(sizes(), strides(), 0) <= INT32_MAX,
                   "packed_accessor32: the tensor's elements lie further apart than 32-bit indices reach; use "
                   "packed_accessor64");
  int32_t sizes32[N], strides32[N];
  for (size_t i = 0; i < N; ++i) {
    sizes32[i] = static_cast<int32_t>(sizes()[i]);
    strides32[i] = static_cast<int32_t>(strides()[i]);
  }
  return {data_ptr<std::remove_const_t<T>>(), sizes32, strides32};
}

}  // namespace rush
