#include "tests/labs/device/held_arguments.h"

#include "core/ops/view/copy.h"
#include "core/tensor_impl.h"
#include "tests/labs/device/accelerator.h"

namespace rush::labs {

Tensor ArgumentAccesses::hold(const Tensor& t, bool writes) {
  if (!t.defined()) return t;
  if (t.is_cpu() && !t.is_pinned()) return t.clone();
  const TensorImpl& impl = *t.impl();
  const StorageImpl& storage = *impl.storage();
  const auto nothing = [](void*) {};
  auto held = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(storage.data(), storage.nbytes(), Device(kCPU), nothing, nullptr), impl.dtype(),
      Device(kCPU));
  held->set_geometry(impl.sizes(), impl.strides(), impl.storage_offset());
  held->set_wrapped_number(impl.is_wrapped_number());
  if (t.numel() > 0) {
    const auto* begin = static_cast<const char*>(t.data_ptr());
    const int64_t elements = storage_extent(t.sizes(), t.strides(), 0);
    accesses_.push_back({storage.data(), begin, begin + elements * t.element_size(), writes,
                         str(t.scalar_type(), " of shape ", t.sizes()), use_of(storage.data())});
  }
  return Tensor(std::move(held));
}

HeldArgument<TensorIterator&>::HeldArgument(TensorIterator& argument, ArgumentAccesses& accesses) : op_(argument.op()) {
  for (int i = 0; i < argument.ntensors(); ++i) {
    const TensorIterator::Operand& operand = argument.operand(i);
    RUSH_CHECK(operand.data == operand.tensor.data_ptr(), op_, ": the emulated accelerator takes whole tensors");
    operands_.push_back(accesses.hold(operand.tensor, /*writes=*/i == 0));
  }
}

TensorIterator& HeldArgument<TensorIterator&>::get() {
  const TensorList inputs(operands_.data() + 1, operands_.size() - 1);
  const Tensor& out = operands_[0];
  iterator_.reset(inputs.empty() ? new TensorIterator(TensorIterator::nullary(op_, out))
                                 : new TensorIterator(op_, out, inputs, Promotion::None, out.scalar_type()));
  return *iterator_;
}

void HeldArgument<TensorIterator&>::finish() {
  iterator_->finish();
  iterator_.reset();
}

}  // namespace rush::labs
