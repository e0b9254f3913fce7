// Switches that the environment sets.
#pragma once

namespace rush {

/// Whether the variable is 1, and not 0. One that is empty or not set is taken for `without`, and so is, with a
/// warning, one that is neither.
bool environment_flag(const char* name, bool without = false);

}  // namespace rush
