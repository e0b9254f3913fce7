// The checks of a capstone's operator and of its fused kernel.
#pragma once
namespace capstone {

/// Runs the check that the argument names, and prints what was seen. Returns 0 if it is right, and 1 otherwise. Without
/// an argument it prints the names of the operator's arguments, one a line; with `calls FILE` it writes the fused
/// kernel's calls for on_gpu.cu.
int check(int argc, char** argv);

}  // namespace capstone
