#include "examples/stop_request.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "core/error/error.h"

using namespace examples;

namespace {

// How a process that does this ends.
int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(STDERR_FILENO);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);  // doctest has handlers of its own
    body();
    std::_Exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("StopRequest: the first signal is noted, the second ends the process, whichever they are") {
  const int one = status_of([] {
    const StopRequest request;
    if (request.pending()) std::_Exit(1);
    std::raise(SIGTERM);
    if (!request.pending()) std::_Exit(2);
    try {
      request.end("after step 3", "again --resume", [] {});
    } catch (const Stopped& stopped) {
      const std::string what = stopped.what();
      std::_Exit(
          stopped.signal() == SIGTERM && what == "stopped by SIGTERM after step 3; to go on: again --resume" ? 0 : 3);
    }
  });
  CHECK(one == 0);
  const int full = status_of([] {
    const StopRequest request;
    std::raise(SIGTERM);
    try {
      request.end("after step 3", "again --resume", [] { throw rush::IOError("a: cannot write: disk full"); });
    } catch (const rush::IOError& error) {
      const std::string what = error.what();
      std::_Exit(
          what == "stopped by SIGTERM after step 3; a: cannot write: disk full; to go on from the last checkpoint: "
                  "again --resume"
              ? 0
              : 3);
    }
  });
  CHECK(full == 0);
  const int two = status_of([] {
    const StopRequest request;
    std::raise(SIGTERM);
    std::raise(SIGINT);
  });
  CHECK(WIFSIGNALED(two));
  CHECK(WTERMSIG(two) == SIGINT);
}

TEST_CASE("StopRequest: what was ignored stays ignored, and what was there before comes back") {
  const int ignored = status_of([] {
    std::signal(SIGHUP, SIG_IGN);
    const StopRequest request;
    std::raise(SIGHUP);
    if (request.pending()) std::_Exit(1);
  });
  CHECK(ignored == 0);
  const int over = status_of([] {
    { const StopRequest request; }
    std::raise(SIGINT);
  });
  CHECK(WIFSIGNALED(over));
  CHECK(WTERMSIG(over) == SIGINT);
}

TEST_CASE("resume_command: the same words for a shell, with --resume once and without --overwrite") {
  const char* before = std::getenv("RUSH_CALLED_AS");
  const std::string called_as = before ? before : "";
  ::unsetenv("RUSH_CALLED_AS");
  const char* words[] = {"bin/my gpt", "--overwrite", "--prompt", "it's $HOME", "--out_dir=a/b", "--resume=true", ""};
  char* argv[7];
  for (size_t i = 0; i < 7; ++i) argv[i] = const_cast<char*>(words[i]);
  CHECK(resume_command(7, argv) == "'bin/my gpt' --prompt 'it'\\''s $HOME' --out_dir=a/b '' --resume");
  ::setenv("RUSH_CALLED_AS", "./rush --cuda gpt", 1);
  CHECK(resume_command(1, argv) == "./rush --cuda gpt --resume");
  if (before) {
    ::setenv("RUSH_CALLED_AS", called_as.c_str(), 1);
  } else {
    ::unsetenv("RUSH_CALLED_AS");
  }
}
