#include "nn/data/worker_exception.h"

namespace rush::data {
namespace {

std::string describe(const std::exception_ptr& original) {
  const std::string what = "Caught exception in DataLoader worker thread.";
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& error) {
    return what + " Original message: " + error.what();
  } catch (...) {
    return what + " It is no std::exception.";
  }
}

}  // namespace

WorkerException::WorkerException(std::exception_ptr original)
    : Error(describe(original)), original_exception(std::move(original)), message(what()) {}

void detail::throw_worker_exception(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const WorkerException&) {
    throw;
  } catch (...) {
    throw WorkerException(failure);
  }
}

}  // namespace rush::data
