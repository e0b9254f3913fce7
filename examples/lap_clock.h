// Times the laps of a loop without holding up a device that works behind the host.
#pragma once

#include <chrono>
#include <vector>

#include "core/device/device.h"
#include "core/device/event.h"

namespace examples {

/// On CUDA by events in the device's current stream, elsewhere by the host's clock.
class LapClock {
 public:
  explicit LapClock(rush::Device device) : device_(device) {}

  /// Ends a lap and begins the next; the first call only begins. Waits for nothing.
  void mark();
  /// Seconds of each lap. Waits until the device has done the last one.
  std::vector<double> laps() const;

 private:
  rush::Device device_;
  std::vector<rush::Event> events_;
  std::vector<std::chrono::steady_clock::time_point> times_;
};

/// The middle one; of an even number of values, the lower of the two. Throws rush::ValueError where there are none.
double median(std::vector<double> values);

}  // namespace examples
