// Whether what a program prints arrives.
#pragma once

#include <string>

namespace examples {

/// Flushes stdout. False if that, or anything printed before, could not be written.
bool flush_stdout();

/// Empty if flush_stdout(); else "cannot write to stdout: No space left on device".
std::string stdout_problem();

/// Throws rush::IOError if there is such a problem.
void check_stdout();

/// From now on a write to a pipe that nobody reads fails, as one to a full disk does; otherwise it ends the process
/// without a word. Throws rush::IOError if stdout is closed: the next file that is opened would take its place.
void prepare_stdout();

}  // namespace examples
