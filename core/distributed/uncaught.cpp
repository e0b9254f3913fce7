#include "core/distributed/uncaught.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

#include "core/debug/stack_trace.h"
#include "core/str.h"

namespace rush::distributed::detail {

namespace {

int told_rank = 0, told_size = 1;

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

[[noreturn]] void abort_with_rank() noexcept {
  const std::string line = str("rank ", told_rank, " of ", told_size, ": ", describe_current_exception(), '\n');
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

}  // namespace

void tell_rank_of_uncaught(int rank, int size) {
  told_rank = rank;
  told_size = size;
  const std::terminate_handler previous = std::set_terminate(&abort_with_rank);
#ifdef __GLIBCXX__
  if (previous != &__gnu_cxx::__verbose_terminate_handler) std::set_terminate(previous);
#endif
}

}  // namespace rush::distributed::detail
