#include "core/dispatch/cpu_fallback.h"

#include <cstring>

#include "core/device/backend.h"
#include "core/iterator/tensor_iterator.h"

namespace rush::detail {

bool falls_back_to_cpu(DeviceType device) {
  if (device == kCPU) return false;
  const Backend* backend = backend_or_null(device);
  return backend && backend->falls_back_to_cpu();
}

const HostCopies::Block& HostCopies::block_of(const Storage& storage) {
  for (const Block& block : blocks_) {
    if (block.device.get() == storage.get()) return block;
  }
  const size_t nbytes = storage->nbytes();
  const auto on_host = [&] { return make_intrusive<StorageImpl>(nbytes, Device(kCPU), &allocator(kCPU)); };
  Block block{storage, on_host(), on_host()};
  if (nbytes > 0) {
    backend_of(device_).copy_bytes(block.host->data(), kCPU, storage->data(), storage->device(), nbytes);
    std::memcpy(block.before->data(), block.host->data(), nbytes);
  }
  return blocks_.emplace_back(std::move(block));
}

Tensor HostCopies::to_host(const Tensor& t) {
  if (!t.defined() || t.device().type != device_) return t;
  const TensorImpl& impl = *t.impl();
  auto moved = make_intrusive<TensorImpl>(block_of(impl.storage()).host, impl.dtype(), Device(kCPU));
  moved->set_geometry(impl.sizes(), impl.strides(), impl.storage_offset());
  moved->set_wrapped_number(impl.is_wrapped_number());
  return moved_.emplace_back(Tensor(std::move(moved)), t).first;
}

Tensor HostCopies::to_device(const Tensor& t) {
  for (const auto& [host, device] : moved_) {
    if (host.is_same(t)) return device;
  }
  return t.defined() && t.is_cpu() ? t.to(Device(device_)) : t;
}

void HostCopies::write_back() {
  for (const Block& block : blocks_) {
    const size_t nbytes = block.device->nbytes();
    if (nbytes == 0 || std::memcmp(block.before->data(), block.host->data(), nbytes) == 0) continue;
    backend_of(device_).copy_bytes(block.device->data(), block.device->device(), block.host->data(), kCPU, nbytes);
  }
}

HostArgument<TensorIterator&>::HostArgument(std::pair<HostCopies&, TensorIterator&> argument)
    : iterator_(argument.second), device_(iterator_.device_type()) {
  for (int i = 0; i < iterator_.ntensors(); ++i) {
    const TensorIterator::Operand& operand = iterator_.operand(i);
    operands_.emplace_back(operand.tensor, operand.data);
    const Tensor moved = argument.first.to_host(operand.tensor);
    const char* from = static_cast<const char*>(operand.tensor.data_ptr());
    iterator_.move_operand(i, moved, static_cast<char*>(moved.data_ptr()) + (operand.data - from));
  }
  iterator_.set_device_type(kCPU);
}

HostArgument<TensorIterator&>::~HostArgument() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    iterator_.move_operand(static_cast<int>(i), std::move(operands_[i].first), operands_[i].second);
  }
  iterator_.set_device_type(device_);
}

}  // namespace rush::detail
