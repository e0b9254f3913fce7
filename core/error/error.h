// The exceptions that Rushlight throws and the checks that throw them. Every message is one line.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/macros.h"
#include "core/str.h"

namespace rush {

// Note [What an error says]
// `what()` is one line of three parts: the message, which names the operator, what it got and what it expected; what
// the thread was in the middle of, "[in Net.encoder.fc1]", which ErrorContext knows; and the functions outside the
// library that led to the call, innermost first, "[called from train_step (program+0x1f2a) < main (program+0x2b31)]".
// The last is put into words when it is read; an exception that nobody prints costs the walk over its return addresses.
// No part has control characters, whatever a file or a caller passed in, and all together fit on a screen.

/// The base of every exception of this library. Mirrors c10::Error, Python's RuntimeError.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string message);

  /// Message, context and calling functions, on one line: see Note [What an error says].
  const char* what() const noexcept override;
  /// The message alone.
  std::string msg() const { return std::runtime_error::what(); }
  /// Message and context.
  const char* what_without_backtrace() const noexcept;
  /// What was being done, innermost first: "in Net.encoder.fc1".
  const std::vector<std::string>& context() const noexcept;
  /// The functions outside the library that led here, innermost first: "train_step (program+0x1f2a) < main
  /// (program+0x2b31)". Empty where set_error_stacks(false) was called, and in programs without symbols.
  std::string backtrace() const;
  /// Appends to the context, once: what it has already stays as it is.
  void add_context(std::string what);

 private:
  struct Details;
  std::shared_ptr<Details> details_;  // null where memory ran out
};

/// Whether errors and warnings tell the functions that led to them. On at first, unless RUSH_SHOW_STACK=0 is set.
void set_error_stacks(bool on);
bool error_stacks();

/// An argument has the right type and a wrong value. Mirrors c10::ValueError, Python's ValueError.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// An argument has a wrong type or dtype. Mirrors c10::TypeError, Python's TypeError.
class TypeError : public Error {
 public:
  using Error::Error;
};

/// A dimension or an index is out of range. Mirrors c10::IndexError, Python's IndexError.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// No kernel exists for this dtype, device or option. Mirrors c10::NotImplementedError, Python's NotImplementedError.
class NotImplementedError : public Error {
 public:
  using Error::Error;
};

/// An allocation failed, on any device. Mirrors c10::OutOfMemoryError, torch.OutOfMemoryError in Python.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be read, written or parsed. Mirrors Python's OSError, formerly IOError.
class IOError : public Error {
 public:
  using Error::Error;
};

/// A matrix is singular, or an iteration did not converge. c10::LinAlgError, Python's torch.linalg.LinAlgError.
class LinAlgError : public Error {
 public:
  using Error::Error;
};

namespace detail {
// Compiled once for the exceptions that most files throw: their tables would otherwise be in every object file.
template <class E>
[[noreturn]] RUSH_COLD RUSH_NOINLINE void throw_error(std::string message) {
  throw E(std::move(message));
}
extern template void throw_error<Error>(std::string);
extern template void throw_error<ValueError>(std::string);
extern template void throw_error<TypeError>(std::string);
extern template void throw_error<IndexError>(std::string);
extern template void throw_error<NotImplementedError>(std::string);
extern template void throw_error<IOError>(std::string);

// Arguments come by value: a local passed by reference would have to live in memory on the path that does not throw,
// and string literals of different lengths would each instantiate their own function.
template <class E, class... Args>
[[noreturn]] RUSH_COLD RUSH_NOINLINE void fail(Args... args) {
  static_assert(sizeof...(Args) > 0, "a failure explains itself: pass the message's parts");
  throw_error<E>(str(args...));
}

[[noreturn]] RUSH_COLD void fail_internal(const char* condition, const char* file, int line,
                                          const std::string& message);
}  // namespace detail

}  // namespace rush

/// Throws an `ErrorType` whose message is the concatenation of the other arguments.
#define RUSH_THROW(ErrorType, ...) ::rush::detail::fail<ErrorType>(__VA_ARGS__)

/// Throws an `ErrorType` unless `condition` holds. The message's arguments are evaluated only then.
#define RUSH_CHECK_AS(ErrorType, condition, ...) \
  do {                                           \
    if (RUSH_UNLIKELY(!(condition))) {           \
      RUSH_THROW(ErrorType, __VA_ARGS__);        \
    }                                            \
  } while (false)

#define RUSH_CHECK(condition, ...) RUSH_CHECK_AS(::rush::Error, condition, __VA_ARGS__)
#define RUSH_CHECK_VALUE(condition, ...) RUSH_CHECK_AS(::rush::ValueError, condition, __VA_ARGS__)
#define RUSH_CHECK_TYPE(condition, ...) RUSH_CHECK_AS(::rush::TypeError, condition, __VA_ARGS__)
#define RUSH_CHECK_INDEX(condition, ...) RUSH_CHECK_AS(::rush::IndexError, condition, __VA_ARGS__)
#define RUSH_CHECK_NOT_IMPLEMENTED(condition, ...) RUSH_CHECK_AS(::rush::NotImplementedError, condition, __VA_ARGS__)
#define RUSH_CHECK_IO(condition, ...) RUSH_CHECK_AS(::rush::IOError, condition, __VA_ARGS__)
#define RUSH_CHECK_LINALG(condition, ...) RUSH_CHECK_AS(::rush::LinAlgError, condition, __VA_ARGS__)

/// What only a bug in Rushlight can violate. Bad input is never reported this way.
#define RUSH_INTERNAL_ASSERT(condition, ...)                                                   \
  do {                                                                                         \
    if (RUSH_UNLIKELY(!(condition))) {                                                         \
      ::rush::detail::fail_internal(#condition, __FILE__, __LINE__, ::rush::str(__VA_ARGS__)); \
    }                                                                                          \
  } while (false)
