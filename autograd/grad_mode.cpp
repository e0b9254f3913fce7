#include "autograd/grad_mode.h"

namespace rush {

void GradMode::set_enabled(bool enabled) {
  dispatch_state.grad_mode = enabled;
  const KeySet autograd = DispatchKey::Autograd;
  dispatch_state.excluded = enabled ? dispatch_state.excluded.without(autograd) : dispatch_state.excluded | autograd;
}

}  // namespace rush
