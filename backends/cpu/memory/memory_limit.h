// How much memory this process may use.
#pragma once
#include <cstdint>
#include <string>

namespace rush::cpu {

// Bytes: the least of the machine's memory, of what its control groups allow (a container's limit) and of what
// setrlimit set for addresses and data. Files are looked for below `root`, which tests replace.
int64_t find_memory_limit(const std::string& root = "");

}  // namespace rush::cpu
