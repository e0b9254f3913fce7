// Cloneable<Derived>: the base of modules that can be copied whole.
#pragma once
#include "nn/module.h"

namespace rush::nn {

/// What is the same for every Derived, so that a program pays for it once and not for each class that it sees.
class CloneableBase : public Module {
 public:
  using Module::Module;

  /// Makes all parameters, buffers and submodules again, with values as at first.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

 private:
  void clone_(Module& other, const std::optional<Device>& device) final;
  // A copy that shares parameters, buffers and submodules with this module.
  virtual CloneableBase* new_copy() const = 0;
  // Becomes such a copy of other; false if that is of another class.
  virtual bool assign(const Module& other) = 0;
};

/// Derived writes `void reset() override`, which registers its parameters, buffers and submodules again and initialises
/// them; its constructor calls it. A clone is a copy of the object, reset so that it shares nothing, then given the
/// values. Where the values are drawn, `reset_parameters()` draws them again, in place.
template <class Derived>
class Cloneable : public CloneableBase {
 public:
  using CloneableBase::CloneableBase;

 private:
  CloneableBase* new_copy() const final { return new Derived(static_cast<const Derived&>(*this)); }
  bool assign(const Module& other) final {
    const auto* same = dynamic_cast<const Derived*>(&other);
    if (same) static_cast<Derived&>(*this) = *same;
    return same;
  }
};

}  // namespace rush::nn
