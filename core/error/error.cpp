#include "core/error/error.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "core/debug/stack_trace.h"
#include "core/error/error_context.h"
#include "core/print/printable.h"

namespace rush {

namespace {

// In bytes. A screen has 24 lines of 80 columns; the functions that led to a call are four short texts.
constexpr size_t kLongestMessage = 1400;
constexpr size_t kLongestContext = 300;

std::atomic<bool>& stacks_are_shown() {
  static std::atomic<bool> shown = [] {
    const char* asked = std::getenv("RUSH_SHOW_STACK");
    return !asked || std::string_view(asked) != "0";
  }();
  return shown;
}

}  // namespace

void set_error_stacks(bool on) { stacks_are_shown() = on; }
bool error_stacks() { return stacks_are_shown(); }

struct Error::Details {
  Details() = default;
  Details(const Details& other) : context(other.context), with_context(other.with_context), stack(other.stack) {}

  std::vector<std::string> context;
  std::string with_context;  // the message with it; empty where there is none
  StackTrace stack;          // empty while stacks are off
  std::once_flag once;
  std::string with_stack;  // what() at its first call
};

Error::Error(std::string message) : std::runtime_error(printable(message, kLongestMessage)) {
  try {
    details_ = std::make_shared<Details>();
    for (std::string& each : ErrorContext::describe()) add_context(std::move(each));
    if (error_stacks()) details_->stack = StackTrace::capture();
  } catch (const std::bad_alloc&) {
    // The message is there; where it comes from can be left out.
  }
}

const char* Error::what() const noexcept {
  if (!details_) return std::runtime_error::what();
  try {
    std::call_once(details_->once, [this] {
      const std::string calls = backtrace();
      if (!calls.empty()) details_->with_stack = str(what_without_backtrace(), " [called from ", calls, "]");
    });
  } catch (const std::exception&) {
    // Likewise.
  }
  return details_->with_stack.empty() ? what_without_backtrace() : details_->with_stack.c_str();
}

const char* Error::what_without_backtrace() const noexcept {
  return details_ && !details_->with_context.empty() ? details_->with_context.c_str() : std::runtime_error::what();
}

const std::vector<std::string>& Error::context() const noexcept {
  static const std::vector<std::string> none;
  return details_ ? details_->context : none;
}

std::string Error::backtrace() const {
  return details_ ? join_frames(details_->stack.frames_outside_library()) : std::string();
}

void Error::add_context(std::string what) {
  // Copies of an exception share their details.
  auto changed = details_ ? std::make_shared<Details>(*details_) : std::make_shared<Details>();
  what = printable(what, kLongestContext);
  if (std::find(changed->context.begin(), changed->context.end(), what) != changed->context.end()) return;
  changed->with_context = str(what_without_backtrace(), " [", what, "]");
  changed->context.push_back(std::move(what));
  details_ = std::move(changed);
}

namespace detail {
template void throw_error<Error>(std::string);
template void throw_error<ValueError>(std::string);
template void throw_error<TypeError>(std::string);
template void throw_error<IndexError>(std::string);
template void throw_error<NotImplementedError>(std::string);
template void throw_error<IOError>(std::string);

void fail_internal(const char* condition, const char* file, int line, const std::string& message) {
  throw Error(str("internal assertion failed, please report it: ", condition, " (", file, ":", line, ")",
                  message.empty() ? "" : ": ", message));
}
}  // namespace detail

}  // namespace rush
