// How many processors this process may use.
#pragma once
#include <string>

namespace rush {

/// At least 1: those that it may run on (sched_setaffinity), and no more than the time that its control groups allow
/// comes to, a container's limit, rounded up. Files are looked for below `root`, which tests replace.
int available_processors(const std::string& root = "");

}  // namespace rush
