#pragma once
#include <cstdio>
#include <exception>

namespace examples {

// The rest of a program's main(): calls body(), and turns what it throws into a line that begins with the program's
// name. Returns the exit status.
template <class Body>
int run_program(const char* name, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
  return 0;
}

}  // namespace examples
