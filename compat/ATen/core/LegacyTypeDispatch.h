// Guards under which libtorch's kernels call operators beneath autograd.
#pragma once
#include "c10/macros/Macros.h"

#include <rushlight.h>

namespace at {

/// Nothing is recorded until the end of the scope: a NoGradGuard's effect.
using AutoDispatchBelowAutograd = rush::NoGradGuard;
using AutoDispatchBelowADInplaceOrView = rush::NoGradGuard;

/// The old name of it. AutoNonVariableTypeMode(false) is an error in libtorch, too.
struct AutoNonVariableTypeMode : rush::NoGradGuard {
  explicit AutoNonVariableTypeMode(bool enabled = true) {
    RUSH_CHECK(enabled, "AutoNonVariableTypeMode: it can only be enabled");
  }
};

}  // namespace at
