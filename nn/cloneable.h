// Cloneable<Derived>: the base of modules that can be copied whole.
#pragma once
#include "autograd/grad_mode.h"
#include "nn/module.h"

namespace rush::nn {

// Derived writes `void reset() override`, which registers its parameters, buffers and submodules anew and initialises
// them; its constructor calls it. A clone is a copy of the object, reset so that it shares nothing, then given the
// values.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;

  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    const NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->forget_members();
    copy->reset();
    copy->copy_members(*this, device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    const auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
    RUSH_CHECK(copy, "clone: the submodule is ", other.name(), ", after reset() it is ", name());
    static_cast<Derived&>(*this) = *copy;
  }
};

}  // namespace rush::nn
