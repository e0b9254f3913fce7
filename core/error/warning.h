// Warnings: what is probably a mistake and yet has a meaning. They go to a handler that a program can replace.
#pragma once
#include <string>
#include <vector>

#include "core/debug/stack_trace.h"
#include "core/error/source_location.h"
#include "core/str.h"

namespace rush {

// Note [Warnings]
// An operator warns where PyTorch does: of what runs and seldom means what was written, such as mse_loss of shapes that
// broadcast. RUSH_WARN_ONCE_PER_CALLER warns once for each place in the program that calls into the library, as Python
// does for each line; it walks the stack to find it, so it belongs on paths that a program takes by mistake. A
// program that wants errors sets a handler that throws: warnings are given before anything is changed.

/// One warning. Mirrors c10::Warning.
class Warning {
 public:
  explicit Warning(std::string message, SourceLocation where = SourceLocation::current());

  /// The message alone, one line, which begins with the operator's name.
  const std::string& msg() const { return message_; }
  /// Message, context and calling functions as in Error::what().
  std::string what() const;
  /// What was being done, as Error::context().
  const std::vector<std::string>& context() const { return context_; }
  /// The line of the library, or of the program, that warns.
  const SourceLocation& source_location() const { return where_; }
  const StackTrace& stack() const { return stack_; }  // the calls that led to it

 private:
  std::string message_;
  SourceLocation where_;
  std::vector<std::string> context_;
  StackTrace stack_;
};

/// Gets the warnings of a program. Mirrors c10::WarningHandler.
class WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  /// Called on the thread that warns, on several at once where several do. May throw: the exception leaves the call
  /// that warned, which has changed nothing yet.
  virtual void process(const Warning& warning) = 0;
};

/// Gives a warning to this thread's handler. RUSH_WARN writes it shorter.
void warn(const Warning& warning);

/// Mirrors c10::WarningUtils.
namespace WarningUtils {

/// Replaces the handler of all threads, which the caller keeps alive; null brings back the one that writes a line
/// "Warning: ..." to stderr. (c10's is that of the calling thread only.)
void set_warning_handler(WarningHandler* handler) noexcept;
/// That of this thread: the innermost WarningHandlerGuard's, else that of all threads.
WarningHandler* get_warning_handler() noexcept;

/// Replaces the handler of this thread for the time of a scope.
class WarningHandlerGuard {
 public:
  explicit WarningHandlerGuard(WarningHandler* handler);
  ~WarningHandlerGuard();
  WarningHandlerGuard(const WarningHandlerGuard&) = delete;
  WarningHandlerGuard& operator=(const WarningHandlerGuard&) = delete;

 private:
  WarningHandler* previous_;
};

/// Whether warnings that are given once are given each time: for tests, and to find all places. Off at first.
void set_warnAlways(bool on) noexcept;
bool get_warnAlways() noexcept;

}  // namespace WarningUtils

namespace detail {
void warn_once_per_caller(const Warning& warning);
}

}  // namespace rush

/// Warns; the message is the concatenation of the arguments.
#define RUSH_WARN(...) ::rush::warn(::rush::Warning(::rush::str(__VA_ARGS__)))

/// Warns the first time that this line is reached.
#define RUSH_WARN_ONCE(...)                                      \
  do {                                                           \
    if (::rush::WarningUtils::get_warnAlways()) {                \
      RUSH_WARN(__VA_ARGS__);                                    \
    } else {                                                     \
      static const bool warned = (RUSH_WARN(__VA_ARGS__), true); \
      static_cast<void>(warned);                                 \
    }                                                            \
  } while (false)

/// Warns the first time that a place outside the library reaches this line. See Note [Warnings].
#define RUSH_WARN_ONCE_PER_CALLER(...) ::rush::detail::warn_once_per_caller(::rush::Warning(::rush::str(__VA_ARGS__)))
