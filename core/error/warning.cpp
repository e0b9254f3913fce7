#include "core/error/warning.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <tuple>

#include "core/error/error.h"
#include "core/error/error_context.h"
#include "core/print/printable.h"

namespace rush {

namespace {

constexpr size_t kLongestMessage = 1400;  // in bytes, as an error's

class WriteToStderr : public WarningHandler {
 public:
  void process(const Warning& warning) override {
    std::fputs(str("Warning: ", warning.what(), "\n").c_str(),
               stderr);  // one call, so that lines of threads stay whole
  }
};

std::atomic<WarningHandler*> handler_of_all{nullptr};
constinit thread_local WarningHandler* handler_of_thread = nullptr;
std::atomic<bool> warn_always{false};

}  // namespace

Warning::Warning(std::string message, SourceLocation where)
    : message_(printable(message, kLongestMessage)),
      where_(where),
      context_(ErrorContext::describe()),
      stack_(StackTrace::capture()) {}

std::string Warning::what() const {
  std::string text = message_;
  for (const std::string& each : context_) text += " [" + each + "]";
  const std::string calls = error_stacks() ? join_frames(stack_.frames_outside_library()) : std::string();
  return calls.empty() ? text : str(text, " [called from ", calls, "]");
}

void warn(const Warning& warning) { WarningUtils::get_warning_handler()->process(warning); }

namespace WarningUtils {

void set_warning_handler(WarningHandler* handler) noexcept { handler_of_all = handler; }

WarningHandler* get_warning_handler() noexcept {
  static WriteToStderr write_to_stderr;
  if (handler_of_thread) return handler_of_thread;
  WarningHandler* handler = handler_of_all;
  return handler ? handler : &write_to_stderr;
}

WarningHandlerGuard::WarningHandlerGuard(WarningHandler* handler) : previous_(handler_of_thread) {
  handler_of_thread = handler;
}
WarningHandlerGuard::~WarningHandlerGuard() { handler_of_thread = previous_; }

void set_warnAlways(bool on) noexcept { warn_always = on; }
bool get_warnAlways() noexcept { return warn_always; }

}  // namespace WarningUtils

void detail::warn_once_per_caller(const Warning& warning) {
  // The file's name is a literal: its address and the line name the place that warns.
  using Place = std::tuple<const void*, int, const void*>;
  static std::mutex& mutex = *new std::mutex;
  static auto& given = *new std::set<Place>;
  const SourceLocation& where = warning.source_location();
  const Place place(where.file_name(), where.line(), warning.stack().caller_outside_library());
  if (!WarningUtils::get_warnAlways()) {
    const std::lock_guard lock(mutex);
    if (!given.insert(place).second) return;
  }
  try {
    warn(warning);
  } catch (...) {  // a handler that turns warnings into errors wants each
    const std::lock_guard lock(mutex);
    given.erase(place);
    throw;
  }
}

}  // namespace rush
