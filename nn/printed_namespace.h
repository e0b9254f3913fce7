// The namespace that modules print.
#pragma once
#include <string>

namespace rush::nn::detail {

// Note [The names of modules in print]
// A module prints as "rush::nn::Linear(...)". In a program that was written for libtorch it is
// "torch::nn::Linear(...)": compat/ says so, before main, with set_printed_namespace. The rest is the same in both, and
// is what libtorch prints, with lists in square brackets.

// "rush", until it is set: `name` must live as long as the program.
const char* printed_namespace();
void set_printed_namespace(const char* name);
// "rush::nn::", or what stands for it.
std::string printed_prefix();

}  // namespace rush::nn::detail
