#include "examples/run_program.h"

#include <csignal>
#include <cstdio>
#include <exception>

#include "core/error/error.h"
#include "examples/stdout_check.h"
#include "examples/stop_request.h"

namespace examples {

int run_program(const char* name, const std::function<void()>& body) {
  try {
    prepare_stdout();
    body();
    check_stdout();
  } catch (const Stopped& stopped) {
    std::fprintf(stderr, "%s: %s\n", name, stopped.what());
    std::signal(stopped.signal(), SIG_DFL);
    std::raise(stopped.signal());
    return 128 + stopped.signal();  // the first process of a container does not die of signals
  } catch (const rush::Error& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
  return 0;
}

}  // namespace examples
