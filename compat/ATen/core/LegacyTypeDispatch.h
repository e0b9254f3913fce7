// Guards under which an operator's kernel for autograd calls the operator below it.
#pragma once
#include "torch/types.h"

namespace rush {
/// Calls of this thread pass autograd by, for the time of a scope.
class AutoDispatchBelowAutograd {
  DispatchStateGuard below_{KeySet(DispatchKey::Autograd)};
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
}  // namespace rush
