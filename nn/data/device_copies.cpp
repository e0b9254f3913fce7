#include "nn/data/device_copies.h"

#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/view/copy.h"

namespace rush::data::detail {

DeviceCopies::DeviceCopies(Device device) : device_(concrete_device(device)) {
  if (device_.is_accelerator()) stream_ = backend_of(device_.type).stream_from_pool(device_.index);
}

// The copy's memory belongs to the stream of copies; what pinned memory it reads is kept by its own allocator.
void DeviceCopies::begin(Tensor& tensor) const {
  if (!needed()) {
    tensor = tensor.to(device_);
    return;
  }
  const StreamGuard guard(stream_);
  tensor = (tensor.is_cpu() ? pin_memory(tensor) : tensor).to(device_, /*non_blocking=*/true);
}

Event DeviceCopies::mark() const {
  Event mark(device_.type);
  if (needed()) mark.record(stream_);
  return mark;
}

void DeviceCopies::wait(const Event& mark) const {
  if (needed()) mark.block(current_stream(device_));
}

void DeviceCopies::hand_over(const Tensor& tensor) const {
  if (needed()) tensor.record_stream(current_stream(device_));
}

}  // namespace rush::data::detail
