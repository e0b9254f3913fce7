#include "core/ops/register.h"

namespace rush {

void register_ops(Registry& r) {
#define RUSH_CALL(function) function(r);
  RUSH_FORALL_OPERATOR_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush
