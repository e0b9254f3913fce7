// Where a NaN is made: the operator whose result has one that its arguments had not.
#pragma once
#include <atomic>

#include "core/dispatch/op.h"

namespace rush {

/// Whether a floating point or complex tensor has a NaN. False of others, of an undefined one and of one without
/// values.
bool has_nan(const Tensor& tensor);

namespace detail {

// Set by a debugger together with the key Trace in `watching` (rush-break-nan in tools/gdb/rushlight_commands.py): the
// fallback of that key then looks for NaNs in place of printing calls.
extern bool find_nans;

// Calls the operator below the keys `behind`, and nan_found where the call made a NaN. Not the calls that it is part
// of, nor those that leave their result uninitialised.
void call_and_find_nan(const OpBase& op, KeySet behind, Stack& stack);

// The schema of the operator that made the last NaN; null before.
extern std::atomic<const char*> nan_made_by;
// Does nothing: debuggers stop here.
RUSH_NOINLINE void nan_found();

}  // namespace detail

}  // namespace rush
