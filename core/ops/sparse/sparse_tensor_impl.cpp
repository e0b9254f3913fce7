#include "core/ops/sparse/sparse_tensor_impl.h"

namespace rush {

namespace {

// A sparse tensor's own storage holds nothing but the count of writes.
Storage versions_or_new(Storage versions, Device device) {
  return versions ? std::move(versions) : make_intrusive<StorageImpl>(0, device, nullptr);
}

}  // namespace

SparseTensorImpl::SparseTensorImpl(IntArrayRef sizes, const Tensor& indices, const Tensor& values, bool coalesced,
                                   Storage versions)
    : TensorImpl(versions_or_new(std::move(versions), values.device()), values.scalar_type(), values.device(), kSparse),
      indices_(detail::make_alias(indices)),
      values_(detail::make_alias(values)),
      coalesced_(coalesced) {
  set_sparse_sizes(sizes);
}

void SparseTensorImpl::set_parts(const Tensor& indices, const Tensor& values, bool coalesced) {
  indices_ = detail::make_alias(indices);
  values_ = detail::make_alias(values);
  coalesced_ = coalesced;
}

void SparseTensorImpl::set_data_of(const TensorImpl& other) {
  TensorImpl::set_data_of(other);
  const auto& source = static_cast<const SparseTensorImpl&>(other);
  set_parts(source.indices_, source.values_, source.coalesced_);
}

SparseCsrTensorImpl::SparseCsrTensorImpl(Layout layout, IntArrayRef sizes, const Tensor& compressed,
                                         const Tensor& plain, const Tensor& values, Storage versions)
    : TensorImpl(versions_or_new(std::move(versions), values.device()), values.scalar_type(), values.device(), layout),
      compressed_(detail::make_alias(compressed)),
      plain_(detail::make_alias(plain)),
      values_(detail::make_alias(values)) {
  set_sparse_sizes(sizes);
}

void SparseCsrTensorImpl::set_parts(const Tensor& compressed, const Tensor& plain, const Tensor& values) {
  compressed_ = detail::make_alias(compressed);
  plain_ = detail::make_alias(plain);
  values_ = detail::make_alias(values);
}

void SparseCsrTensorImpl::set_data_of(const TensorImpl& other) {
  TensorImpl::set_data_of(other);
  const auto& source = static_cast<const SparseCsrTensorImpl&>(other);
  set_parts(source.compressed_, source.plain_, source.values_);
}

namespace detail {

Tensor sparse_alias(const Tensor& tensor) {
  if (tensor.layout() == kSparse) {
    const auto& source = static_cast<const SparseTensorImpl&>(*tensor.impl());
    return Tensor(make_intrusive<SparseTensorImpl>(source.sizes(), source.indices(), source.values(),
                                                   source.is_coalesced(), source.storage()));
  }
  const auto& source = static_cast<const SparseCsrTensorImpl&>(*tensor.impl());
  return Tensor(make_intrusive<SparseCsrTensorImpl>(source.layout(), source.sizes(), source.compressed_indices(),
                                                    source.plain_indices(), source.values(), source.storage()));
}

}  // namespace detail

}  // namespace rush
