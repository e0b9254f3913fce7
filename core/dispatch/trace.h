// The dispatch trace, RUSH_SHOW_DISPATCH=1: every call prints its operator and where it goes, indented by depth.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

// The fallback of the key Trace, see Note [Watching calls].
void print_call(const OpBase& op, KeySet keys, Stack& stack);

}  // namespace rush
