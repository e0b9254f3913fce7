#include "nn/data/worker_exception.h"

namespace rush::data {

static std::string describe(const std::exception_ptr& original) {
  const std::string what = "Caught exception in DataLoader worker thread.";
  try {
    std::rethrow_exception(original);
  } catch (const Error& error) {
    return what + " Original message: " + error.what_without_backtrace();
  } catch (const std::exception& error) {
    return what + " Original message: " + error.what();
  } catch (...) {
    return what + " It is no std::exception.";
  }
}

WorkerException::WorkerException(std::exception_ptr original, const std::string& place)
    : Error(describe(original)), original_exception(std::move(original)), message(msg()) {
  if (!place.empty()) add_context("in " + place);
}

void detail::throw_worker_exception(const std::exception_ptr& failure, const std::string& place) {
  try {
    std::rethrow_exception(failure);
  } catch (const WorkerException&) {
    throw;
  } catch (...) {
    throw WorkerException(failure, place);
  }
}

void detail::rethrow_from(const BatchScope& scope) {
  if (get_worker_info()) throw_worker_exception(std::current_exception(), scope.place());
  try {
    throw;
  } catch (Error& error) {
    error.add_context("in the DataLoader's " + scope.place());
    throw;
  }
}

}  // namespace rush::data
