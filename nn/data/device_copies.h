// DeviceCopies: copies of batches that go to a GPU while it works on something else.
#pragma once
#include <type_traits>

#include "core/device/device.h"
#include "core/device/event.h"
#include "core/device/stream.h"
#include "core/tensor.h"

namespace rush::data::detail {

// Calls f(tensor) for each tensor that is defined in a tensor, an example, or a list of such.
template <class Batch, class F>
void for_each_tensor(Batch& batch, const F& f) {
  if constexpr (std::is_same_v<Batch, Tensor>) {
    if (batch.defined()) f(batch);
  } else if constexpr (requires { batch.data(); }) {  // a vector, an array
    for (auto& each : batch) for_each_tensor(each, f);
  } else {
    for_each_tensor(batch.data, f);
    if constexpr (requires { batch.target; }) for_each_tensor(batch.target, f);
  }
}

// A stream of its own for copies. Where the device is the CPU all of this does nothing.
class DeviceCopies {
 public:
  // Throws as concrete_device does.
  explicit DeviceCopies(Device device);

  // Begins a copy of `tensor`, and replaces it by that: the host goes on at once. Memory that is not pinned is copied
  // to some that is first.
  void begin(Tensor& tensor) const;
  // Marks the end of the copies that were begun until now.
  Event mark() const;
  // Makes the device's current stream wait for the mark,
  void wait(const Event& mark) const;
  // and keeps the memory of a tensor until that stream is done with it.
  void hand_over(const Tensor& tensor) const;

  bool needed() const { return stream_.is_queue(); }

 private:
  Device device_;
  Stream stream_;
};

}  // namespace rush::data::detail
