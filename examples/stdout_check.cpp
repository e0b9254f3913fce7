#include "examples/stdout_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/error/error.h"

namespace examples {

bool flush_stdout() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

std::string stdout_problem() {
  if (flush_stdout()) return "";
  // Why it failed then is forgotten; one more try says why it still does.
  const std::string reason = ::write(STDOUT_FILENO, "\n", 1) < 0 ? std::string(": ") + std::strerror(errno) : "";
  return "cannot write to stdout" + reason;
}

void check_stdout() {
  const std::string problem = stdout_problem();
  RUSH_CHECK_IO(problem.empty(), problem);
}

void prepare_stdout() {
  std::signal(SIGPIPE, SIG_IGN);
  RUSH_CHECK_IO(::fcntl(STDOUT_FILENO, F_GETFD) >= 0, "stdout is closed; > /dev/null is the way to see nothing");
}

}  // namespace examples
