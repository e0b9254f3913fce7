// Guards by which libtorch's kernels leave dispatch keys out.
#pragma once
#include "c10/macros/Macros.h"

#include "c10/core/DispatchKeySet.h"
#include "core/amp/autocast.h"

namespace c10::impl {

/// Until the end of the scope no call of this thread stops at the keys. Autocast is switched off for the devices whose
/// keys they are; the keys of autograd, of whatever device, leave out autograd; other keys no call stops at.
class ExcludeDispatchKeyGuard {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet excluded) {
    constexpr DispatchKeySet kAutograd{DispatchKey::AutogradOther, DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA,
                                       DispatchKey::AutogradMeta, DispatchKey::ADInplaceOrView};
    if (excluded.has_any(kAutograd)) rush::dispatch_state.excluded |= rush::DispatchKey::Autograd;
    if (excluded.has(DispatchKey::AutocastCPU)) rush::autocast::set_autocast_enabled(rush::kCPU, false);
    if (excluded.has(DispatchKey::AutocastCUDA)) rush::autocast::set_autocast_enabled(rush::kCUDA, false);
  }
  explicit ExcludeDispatchKeyGuard(DispatchKey excluded) : ExcludeDispatchKeyGuard(DispatchKeySet(excluded)) {}

 private:
  rush::DispatchStateGuard restored_;
};

}  // namespace c10::impl
