// What a process says when it ends by an exception that nothing catches.
#pragma once

namespace rush::distributed::detail {

/// From now on an exception that nothing catches is one line on stderr, which begins with "rank 2 of 4: ", before the
/// process aborts. All processes write to the same terminal, where what the C++ library writes of it bit by bit is
/// mixed up. Does nothing where the program has a handler of its own (std::set_terminate).
void tell_rank_of_uncaught(int rank, int size);

}  // namespace rush::distributed::detail
