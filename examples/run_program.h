#pragma once
#include <functional>

namespace examples {

/// The rest of a program's main(): calls body(), and turns what it throws into a line that begins with the program's
/// name. Returns the exit status: 1 also where stdout could not be written. For Stopped it lets the signal end the
/// process, so that a shell sees 128 + its number, and a script is stopped together with its program.
int run_program(const char* name, const std::function<void()>& body);

}  // namespace examples
