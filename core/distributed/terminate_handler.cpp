#include "core/distributed/terminate_handler.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

#include "core/debug/stack_trace.h"
#include "core/str.h"

namespace rush::distributed::detail {

namespace {

int own_rank = 0, world_size = 1;

std::string describe_current_exception() {
  if (!std::current_exception()) return "terminated";
  try {
    throw;
  } catch (const std::exception& error) {
    return str(demangle(typeid(error).name()), ": ", error.what());
  } catch (...) {
    return "an exception of another type than std::exception";
  }
}

[[noreturn]] void print_and_abort() noexcept {
  std::set_terminate(&std::abort);  // for what is thrown here, where memory has run out
  const std::string line = str("rank ", own_rank, " of ", world_size, ": ", describe_current_exception(), '\n');
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

}  // namespace

void install_terminate_handler(int rank, int size) {
  own_rank = rank;
  world_size = size;
  const std::terminate_handler previous = std::set_terminate(&print_and_abort);
#ifdef __GLIBCXX__
  if (previous != &__gnu_cxx::__verbose_terminate_handler) std::set_terminate(previous);
#endif
}

}  // namespace rush::distributed::detail
