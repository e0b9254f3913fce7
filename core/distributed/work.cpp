#include "core/distributed/work.h"

#include "core/ops/view/copy.h"

namespace rush::distributed {

bool Work::is_completed() const {
  const std::lock_guard lock(mutex_);
  return is_completed_ && (!reached_ || reached_->query());
}

void Work::wait() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_completed_; });
    if (failure_) std::rethrow_exception(failure_);
    if (reached_) reached_->block(current_stream(device_));
  }
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  for (const auto& next : std::exchange(next_, {})) next();
}

void Work::finish(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  is_completed_ = true;
  failure_ = std::move(failure);
  changed_.notify_all();
}

void Work::finish_on(const Stream& stream) {
  device_ = stream.device;
  reached_.emplace(stream.device.type).record(stream);
  finish();
}

std::shared_ptr<Work> Work::completed() {
  auto work = std::make_shared<Work>();
  work->finish();
  return work;
}

}  // namespace rush::distributed
