// Cloneable<Derived>: the base of modules that can be copied whole.
#pragma once
#include "autograd/grad_mode.h"
#include "core/ops/copy.h"
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
    const auto& self = static_cast<const Derived&>(*this);
    auto copy = std::make_shared<Derived>(self);
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    copy_values(parameters_, copy->parameters_, device);
    copy_values(buffers_, copy->buffers_, device);
    RUSH_CHECK(copy->children_.size() == children_.size(), "clone: ", name(), " has ", children_.size(),
               " submodules, after reset() its copy has ", copy->children_.size(),
               "; register all submodules in reset(), not in the constructor");
    for (const auto& child : children_) copy->children_[child.key()]->clone_(*child.value(), device);
    return copy;
  }

 private:
  void copy_values(const OrderedDict<std::string, Tensor>& from, OrderedDict<std::string, Tensor>& to,
                   const std::optional<Device>& device) const {
    RUSH_CHECK(from.size() == to.size(), "clone: ", name(), " has ", from.size(),
               " tensors, after reset() its copy has ", to.size(),
               "; register all parameters and buffers in reset(), not in the constructor");
    for (const auto& item : from) {
      Tensor& target = to[item.key()];
      if (!item->defined()) {
        target.reset();
        continue;
      }
      target.set_data(device ? item->detach().to(*device, /*non_blocking=*/false, /*copy=*/true)
                             : item->detach().clone());
      target.set_requires_grad(item->requires_grad());
    }
  }

  void clone_(Module& other, const std::optional<Device>& device) final {
    const auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
    RUSH_CHECK(copy, "clone: the submodule is ", other.name(), ", after reset() it is ", name());
    static_cast<Derived&>(*this) = *copy;
  }
};

}  // namespace rush::nn
