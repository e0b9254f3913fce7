// How much of a thread's stack is left.
#pragma once

namespace rush {

/// Throws Error unless 256 KiB of the calling thread's stack are left: for functions that recurse over what a user has
/// nested, and whose depth nothing else bounds. `what` names the caller. Does nothing where the system does not tell.
void check_stack_space(const char* what);

}  // namespace rush
