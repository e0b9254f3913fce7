// What a process prints before an uncaught exception ends it.
#pragma once

namespace rush::distributed::detail {

/// From now on an uncaught exception prints one line to stderr, which begins with "rank 2 of 4: ", and the process
/// aborts. The C++ library's handler writes its message in several calls, between which those of other processes come.
/// Does nothing where the program has a handler of its own (std::set_terminate).
void install_terminate_handler(int rank, int size);

}  // namespace rush::distributed::detail
