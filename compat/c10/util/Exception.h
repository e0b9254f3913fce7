// libtorch's checks. Their exceptions are ours; a message that is left out says which condition failed.
#pragma once
#include "c10/macros/Macros.h"

#include <concepts>
#include <sstream>
#include <string>

#include "core/error/error.h"
#include "core/error/warning.h"

namespace c10 {

/// The texts that a stream writes of the arguments, one after another.
template <class... Args>
std::string str(const Args&... args) {
  if constexpr (sizeof...(Args) == 1 && (std::convertible_to<const Args&, std::string> && ...)) {
    return (std::string(args), ...);
  } else {
    std::ostringstream text;
    (text << ... << args);
    return text.str();
  }
}
/// The texts of all elements, with `delimiter` between them.
template <class Container>
std::string Join(const std::string& delimiter, const Container& values) {
  std::ostringstream text;
  const char* between = "";
  for (const auto& value : values) {
    text << between << value;
    between = delimiter.c_str();
  }
  return text.str();
}

}  // namespace c10

namespace rush::WarningUtils {

/// Has warnings that are given once be given each time, for the time of a scope.
class WarnAlways {
 public:
  explicit WarnAlways(bool on = true) noexcept : previous_(get_warnAlways()) { set_warnAlways(on); }
  ~WarnAlways() { set_warnAlways(previous_); }
  WarnAlways(const WarnAlways&) = delete;
  WarnAlways& operator=(const WarnAlways&) = delete;

 private:
  bool previous_;
};

}  // namespace rush::WarningUtils

namespace rush::detail {

template <class E>
[[noreturn]] void check_failed(const char* condition) {
  fail<E>("Expected ", condition, " to be true, but got false.");
}
template <class E, class... Args>
[[noreturn]] void check_failed(const char*, const Args&... args) {
  fail<E>(c10::str(args...));
}

/// The message of TORCH_CHECK_EQ and its like, thrown where the statement ends.
class FailedCheck {
 public:
  FailedCheck() = default;
  FailedCheck(const FailedCheck&) = delete;
  FailedCheck& operator=(const FailedCheck&) = delete;
  ~FailedCheck() noexcept(false) { fail<Error>(text_.str()); }
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
};

}  // namespace rush::detail

namespace c10 {
using rush::Error;
using rush::IndexError;
using rush::LinAlgError;
using rush::NotImplementedError;
using rush::OutOfMemoryError;
using rush::TypeError;
using rush::ValueError;
using rush::warn;
using rush::Warning;
using rush::WarningHandler;
namespace WarningUtils = rush::WarningUtils;
}  // namespace c10

// No do-while around it, as in libtorch: some programs leave out the semicolon.
#define RUSH_COMPAT_CHECK(E, condition, ...)                                        \
  if (RUSH_UNLIKELY(!(condition))) {                                                \
    ::rush::detail::check_failed<::rush::E>(#condition __VA_OPT__(, ) __VA_ARGS__); \
  }

#define TORCH_CHECK(condition, ...) RUSH_COMPAT_CHECK(Error, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) RUSH_COMPAT_CHECK(ValueError, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) RUSH_COMPAT_CHECK(TypeError, condition, __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) RUSH_COMPAT_CHECK(IndexError, condition, __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) RUSH_COMPAT_CHECK(LinAlgError, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) RUSH_COMPAT_CHECK(NotImplementedError, condition, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) RUSH_COMPAT_CHECK(Error, condition, __VA_ARGS__)
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) \
  while (false) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define TORCH_CHECK_WITH(E, condition, ...) RUSH_COMPAT_CHECK(E, condition, __VA_ARGS__)
#define TORCH_CHECK_ARG(condition, number, ...) TORCH_CHECK(condition, "invalid argument ", number, ": ", __VA_ARGS__)
#define AT_ASSERT(condition) TORCH_INTERNAL_ASSERT(condition)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)
#define C10_THROW_ERROR(E, message) RUSH_THROW(::rush::E, message)
/// Throws again what a handler has caught, with more said of where it happened.
#define TORCH_RETHROW(error, ...)               \
  do {                                          \
    (error).add_context(c10::str(__VA_ARGS__)); \
    throw;                                      \
  } while (false)

// Of two values, which the message has; more may be written behind it, as into a stream.
#define RUSH_COMPAT_CHECK_OP(a, b, op) \
  if (RUSH_LIKELY((a)op(b))) {         \
  } else                               \
    ::rush::detail::FailedCheck().stream() << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "
#define TORCH_CHECK_EQ(a, b) RUSH_COMPAT_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) RUSH_COMPAT_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LE(a, b) RUSH_COMPAT_CHECK_OP(a, b, <=)
#define TORCH_CHECK_LT(a, b) RUSH_COMPAT_CHECK_OP(a, b, <)
#define TORCH_CHECK_GE(a, b) RUSH_COMPAT_CHECK_OP(a, b, >=)
#define TORCH_CHECK_GT(a, b) RUSH_COMPAT_CHECK_OP(a, b, >)

#define TORCH_WARN RUSH_WARN
#define TORCH_WARN_ONCE RUSH_WARN_ONCE
#define TORCH_WARN_DEPRECATION RUSH_WARN
