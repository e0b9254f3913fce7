#include "autograd/saved_tensors_hooks.h"

#include "autograd/grad_mode.h"

namespace rush {

namespace autograd {

SavedTensorsHooks::SavedTensorsHooks(PackHook pack, UnpackHook unpack)
    : pack_(std::move(pack)), unpack_(std::make_shared<const UnpackHook>(std::move(unpack))), outer_(current_) {
  RUSH_CHECK_VALUE(pack_ && *unpack_, "SavedTensorsHooks: expected two callables, got an empty std::function");
  current_ = this;
}

SavedTensorsHooks::~SavedTensorsHooks() { current_ = outer_; }

std::any SavedTensorsHooks::pack(const Tensor& tensor) const {
  const NoGradGuard no_grad;
  const Tensor outside = detail::make_alias(tensor);
  const int64_t before = tensor._version();
  std::any kept = pack_(outside);
  RUSH_CHECK(tensor._version() == before, "SavedTensorsHooks: the pack hook wrote to the tensor of sizes ",
             tensor.sizes(), " that it was given");
  return kept;
}

}  // namespace autograd

Tensor PackedTensor::unpack() const {
  const NoGradGuard no_grad;
  const Tensor tensor = (*unpack_hook)(kept);
  RUSH_CHECK(tensor.defined(), "backward: the unpack hook of a saved tensor returned an undefined tensor");
  return detail::make_alias(tensor);
}

}  // namespace rush
