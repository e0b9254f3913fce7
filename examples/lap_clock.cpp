#include "examples/lap_clock.h"

#include <algorithm>

#include "core/device/backend.h"
#include "core/error/error.h"

namespace examples {

void LapClock::mark() {
  if (device_.type != rush::kCUDA) {
    times_.push_back(std::chrono::steady_clock::now());
    return;
  }
  events_.emplace_back(rush::kCUDA, /*enable_timing=*/true);
  const rush::Device device = rush::concrete_device(device_);
  events_.back().record(rush::backend_of(rush::kCUDA).current_stream(device.index));
}

std::vector<double> LapClock::laps() const {
  std::vector<double> seconds;
  for (size_t i = 1; i < times_.size(); ++i) {
    seconds.push_back(std::chrono::duration<double>(times_[i] - times_[i - 1]).count());
  }
  if (!events_.empty()) events_.back().synchronize();
  for (size_t i = 1; i < events_.size(); ++i) seconds.push_back(events_[i - 1].elapsed_time(events_[i]) / 1e3);
  return seconds;
}

double median(std::vector<double> values) {
  RUSH_CHECK_VALUE(!values.empty(), "median: there are no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace examples
