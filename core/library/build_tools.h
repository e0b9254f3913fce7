// The compilers that built this library, and how they are called.
#pragma once
#include <string>
#include <vector>

namespace rush::library {

/// A compiler and what it is always given.
struct Compiler {
  std::string program;  // empty where there is none
  std::vector<std::string> flags;
};

Compiler host_compiler();                   // of C++
Compiler device_compiler();                 // of the accelerator's language, as nvcc
std::vector<std::string> device_runtime();  // what the linker is given for that

/// What a program that was run has printed, and how it ended: its exit status, or -1 where it did not start.
struct Run {
  int status = -1;
  std::string output;
};

/// Runs a command in a folder and waits for it; no shell looks at its arguments. `output` is a file that it writes to.
Run run(const std::vector<std::string>& command, const std::string& folder, const std::string& output);

}  // namespace rush::library
