// What advice goes by: sums of a recording, in nanoseconds.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/profiler/advice.h"
#include "core/scalar_type.h"

namespace rush::profiler {

struct FactsOfWait {
  std::string name;  // of the operator or range that waited
  int64_t count = 0, time = 0;
};

struct FactsOfCall {
  std::string name;
  int8_t dtype = -1;  // of the first tensor; -1 without one
  int64_t device = 0;
};

struct FactsOfDevice {
  int64_t count = 0, time = 0;
};

struct Facts {
  int64_t span = 0;  // from the first event to the last
  int64_t busy = 0;  // of the device that did most
  int64_t kernels = 0;
  int64_t loader = 0;    // the program's waits for its loaders
  int64_t pageable = 0;  // copies
  int64_t small = 0;     // kernels of half as many blocks as multiprocessors, or fewer
  std::vector<FactsOfWait> waits;
  std::vector<FactsOfCall> calls;
  std::map<std::string, FactsOfDevice, std::less<>> on_device;  // kernels and copies, by name
};

/// Those whose flaw is seen. See Note [What advice goes by].
std::vector<Advice> advice_on(const Facts& facts);

}  // namespace rush::profiler
