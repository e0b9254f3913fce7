#include "examples/stop_request.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error/error.h"
#include "examples/stdout_check.h"

namespace examples {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch only such");

// Calls nothing but what POSIX lists as safe in a handler.
extern "C" void note_signal(int signal) {
  const int error = errno;
  received = signal;
  struct sigaction defaults {};
  defaults.sa_handler = SIG_DFL;
  for (const int each : kSignals) {
    struct sigaction now;
    if (::sigaction(each, nullptr, &now) == 0 && now.sa_handler == note_signal) ::sigaction(each, &defaults, nullptr);
  }
  constexpr std::string_view kNote = "\nending after this step; the same again ends at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kNote.data(), kNote.size());
  errno = error;
}

std::string name_of(int signal) { return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP"; }

// As a shell's word.
std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

StopRequest::StopRequest() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;  // a read or write that is interrupted goes on
  ::sigfillset(&action.sa_mask);
  for (const int signal : kSignals) {
    struct sigaction old;
    if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    if (::sigaction(signal, &action, nullptr) == 0) old_.push_back({signal, old});
  }
}

StopRequest::~StopRequest() {
  for (const Old& each : old_) ::sigaction(each.signal, &each.action, nullptr);
}

bool StopRequest::pending() const { return !flush_stdout() || received != 0; }

void StopRequest::end(const std::string& done, const std::string& resume_command,
                      const std::function<void()>& save) const {
  const int signal = received;
  const std::string problem = stdout_problem();
  const std::string what = signal != 0        ? "stopped by " + name_of(signal)
                           : !problem.empty() ? problem + "; stopped"
                                              : "stopped with the other processes";
  const std::string why = what + " " + done + "; ";
  try {
    save();
  } catch (const rush::IOError& error) {
    throw rush::IOError(
        rush::str(why, error.what_without_backtrace(), "; to go on from the last checkpoint: ", resume_command));
  }
  const std::string message = why + (resume_command.empty() ? "nothing was saved" : "to go on: " + resume_command);
  RUSH_CHECK_IO(signal != 0, message);
  throw Stopped(signal, message);
}

std::string resume_command(int argc, char** argv) {
  const char* called_as = std::getenv("RUSH_CALLED_AS");  // by ./rush: the words up to its command's, quoted
  std::string command = called_as ? called_as : quoted(argc > 0 ? argv[0] : "");
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (name != "--overwrite" && name != "--resume" && name != "--allow_changes") command += " " + quoted(word);
  }
  return command + " --resume";
}

}  // namespace examples
