#include "examples/late_numbers.h"

#include <utility>

#include "rushlight.h"

namespace examples {

using rush::Tensor;

void LateNumbers::push(const Tensor& numbers) {
  rush::Event done(rush::kCUDA);
  Tensor on_host = numbers.detach();
  if (numbers.is_cuda()) {
    const auto pinned = rush::TensorOptions(numbers.scalar_type()).device(rush::kCPU).pinned_memory(true);
    on_host = rush::empty(numbers.sizes(), pinned).copy_(on_host, /*non_blocking=*/true);
    done.record(rush::current_stream(numbers.device()));
  } else {
    on_host = on_host.clone();
  }
  on_their_way_.push_back({std::move(on_host), std::move(done)});
}

std::optional<Tensor> LateNumbers::pop(bool all) {
  if (on_their_way_.empty()) return std::nullopt;
  const bool is_late = on_their_way_.size() > lag_ || !on_their_way_.front().done.recorded();
  if (!all && !is_late) return std::nullopt;
  const Copy oldest = std::move(on_their_way_.front());
  on_their_way_.pop_front();
  if (oldest.done.recorded()) oldest.done.synchronize();
  return oldest.on_host.to(rush::kFloat64);
}

}  // namespace examples
