#include "autograd/derivatives/register.h"

namespace rush {

void register_autograd(Registry& r) {
#define RUSH_CALL(function) function(r);
  RUSH_FORALL_DERIVATIVE_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush
