// What looks at every call for a person: the dispatch trace, RUSH_SHOW_DISPATCH=1, which prints each operator and where
// it goes, indented by depth; and a debugger's search for the operator that makes a NaN.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

// The fallback of the key Trace, see Note [Watching calls].
void trace_call(const OpBase& op, KeySet keys, Stack& stack);

}  // namespace rush
