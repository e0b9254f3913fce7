// What a DataLoader throws when its workers fail or are late.
#pragma once
#include <exception>
#include <string>

#include "core/error/error.h"
#include "nn/data/worker_info.h"

namespace rush::data {

/// A dataset or a transform threw in another thread than the caller's. `what()` holds its message. Mirrors
/// torch::data::WorkerException.
class WorkerException : public Error {
 public:
  /// `place`, if there is one, says what the worker was doing: "worker 2, batch 5".
  explicit WorkerException(std::exception_ptr original, const std::string& place = "");

  /// What was thrown: std::rethrow_exception brings its type back.
  std::exception_ptr original_exception;
  /// The message alone.
  std::string message;
};

/// No batch came within DataLoaderOptions::timeout.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

namespace detail {
/// Throws a WorkerException for `failure`, or `failure` itself if it is one already.
[[noreturn]] void throw_worker_exception(const std::exception_ptr& failure, const std::string& place = "");
/// Throws what is being handled on with its place: in a worker as a WorkerException, else as it is.
[[noreturn]] void rethrow_from(const BatchScope& scope);
}  // namespace detail

}  // namespace rush::data
