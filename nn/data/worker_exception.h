// What a DataLoader throws when its workers fail or are late.
#pragma once
#include <exception>
#include <string>

#include "core/error.h"

namespace rush::data {

/// A dataset or a transform threw in another thread than the caller's. `what()` holds its message. Mirrors
/// torch::data::WorkerException.
class WorkerException : public Error {
 public:
  explicit WorkerException(std::exception_ptr original);

  /// What was thrown: std::rethrow_exception brings its type back.
  std::exception_ptr original_exception;
  /// The same as what().
  std::string message;
};

/// No batch came within DataLoaderOptions::timeout.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

namespace detail {
/// Throws a WorkerException for `failure`, or `failure` itself if it is one already.
[[noreturn]] void throw_worker_exception(const std::exception_ptr& failure);
}  // namespace detail

}  // namespace rush::data
