#include "nn/cloneable.h"

#include "autograd/grad_mode.h"
#include "core/error/error.h"
#include "core/threads/stack_space.h"

namespace rush::nn {

std::shared_ptr<Module> CloneableBase::clone(const std::optional<Device>& device) const {
  check_stack_space("clone");
  const NoGradGuard no_grad;
  std::shared_ptr<CloneableBase> copy(new_copy());
  copy->forget_members();
  copy->reset();
  copy->copy_members(*this, device);
  return copy;
}

void CloneableBase::clone_(Module& other, const std::optional<Device>& device) {
  const std::shared_ptr<Module> copy = other.clone(device);
  RUSH_CHECK(assign(*copy), "clone: the submodule is ", other.name(), ", after reset() it is ", name());
}

}  // namespace rush::nn
