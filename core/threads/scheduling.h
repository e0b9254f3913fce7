// What a thread asks of the operating system's scheduler, for the thread pool. Where a system has no such call, the
// thread goes on as if the scheduler had nothing to tell.
#pragma once
#include <chrono>

namespace rush::detail {

// Asks for the shortest slices (Linux 6.12; before, this changes nothing). The calling thread then gets its core at
// once when it is woken, though another process is using it, instead of at the next tick of up to 4 ms; its share of
// the core stays what it was.
void ask_for_short_slices();

// The processor that the calling thread runs on; -1 where that is not known.
int current_processor();

// Moves the calling thread to another one of its processors if it runs on this one and there is another.
void leave_processor(int processor);

// For how long the calling thread has run, to a tick of the scheduler; the time since some moment where that is not
// known.
std::chrono::nanoseconds running_time();

}  // namespace rush::detail
