// The names under which modules own tensors and submodules.
#pragma once
#include <string>

namespace rush::nn {

// Throws ValueError, naming `what` ("Parameter"), for a name that is empty or has a dot.
void check_registered_name(const char* what, const std::string& name);

}  // namespace rush::nn
