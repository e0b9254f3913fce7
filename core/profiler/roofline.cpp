#include "core/profiler/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "core/device/backend.h"
#include "core/ops/factory/factories.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/view/copy.h"
#include "core/profiler/text_table.h"

namespace rush::profiler {

namespace {

// The least seconds of some calls, each waited for.
template <class Work>
double least_seconds(Device device, const Work& work) {
  Backend& backend = backend_of(device.type);
  double least = 1e9;
  for (int i = 0; i < 6; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    backend.synchronize(device.index);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

DevicePeaks measure(Device device) {
  const bool is_cpu = device.is_cpu();
  const int64_t bytes = int64_t{1} << (is_cpu ? 26 : 28), n = is_cpu ? 1024 : 4096;
  DevicePeaks peaks;
  // Written before it is read: untouched memory of the host is one page of zeros.
  const Tensor source = ones({bytes}, TensorOptions(kUInt8).device(device)), target = empty_like(source);
  peaks.bytes_per_second = 2 * static_cast<double>(bytes) / least_seconds(device, [&] { target.copy_(source); });
  const auto product = [&](ScalarType dtype) {
    const Tensor a = ones({n, n}, TensorOptions(dtype).device(device));
    const double flops = 2 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    return flops / least_seconds(device, [&] { mm(a, a); });
  };
  peaks.flops_per_second_16 = product(kBFloat16);
  peaks.flops_per_second_32 = product(kFloat32);
  return peaks;
}

// A processor does some hundredths of one.
std::string in_tera(double per_second) { return printed(per_second < 1e11 ? "%.3f" : "%.1f", per_second * 1e-12); }

std::string share_of(double part, double whole) { return whole > 0 ? printed("%.0f%%", 100 * part / whole) : "--"; }

struct Roofline {
  double seconds = 0, by_memory = 0, by_arithmetic = 0;  // taken; needed at the peaks
  const char* bound = "";
};

Roofline roofline_of(const Average& average, const DevicePeaks& peaks, bool has_devices) {
  Roofline line;
  // With the calls within, since the bytes are those of the whole call.
  line.seconds = (has_devices ? average.device_time_total : average.cpu_time_total) * 1e-6;
  if (line.seconds <= 0) return line;
  line.by_memory = average.bytes / peaks.bytes_per_second;
  line.by_arithmetic =
      average.flops_16 / peaks.flops_per_second_16 + (average.flops - average.flops_16) / peaks.flops_per_second_32;
  const double on_host = average.self_cpu_time_total * 1e-6;
  const double most = std::max(line.by_memory, line.by_arithmetic);
  if (most >= 0.5 * line.seconds) {
    line.bound = line.by_memory >= line.by_arithmetic ? "memory" : "arithmetic";
  } else if (average.self_wait_time_total * 1e-6 >= 0.5 * on_host && has_devices) {
    line.bound = "wait";
  } else {
    line.bound = has_devices && on_host > line.seconds ? "host" : "latency";
  }
  return line;
}

}  // namespace

const DevicePeaks& measured_peaks(Device device) {
  static std::mutex mutex;
  static std::map<std::string, DevicePeaks> measured;
  const std::lock_guard lock(mutex);
  const Device concrete = concrete_device(device);
  const auto found = measured.find(str(concrete));
  return found != measured.end() ? found->second : measured.emplace(str(concrete), measure(concrete)).first->second;
}

std::string roofline_table(const KeyAverages& averages, const DevicePeaks& peaks, size_t row_limit) {
  RUSH_CHECK_VALUE(peaks.bytes_per_second > 0 && peaks.flops_per_second_16 > 0 && peaks.flops_per_second_32 > 0,
                   "roofline_table: the peaks must be positive; measured_peaks() gives a device's");
  const bool has_devices =
      std::any_of(averages.begin(), averages.end(), [](const Average& each) { return each.kind == EventKind::Device; });
  std::vector<std::pair<Roofline, const Average*>> sorted;
  for (const Average& average : averages) {
    if (average.kind != EventKind::Operator || average.bytes <= 0) continue;
    const Roofline line = roofline_of(average, peaks, has_devices);
    if (line.seconds > 0) sorted.emplace_back(line, &average);
  }
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.first.seconds; });
  if (sorted.size() > row_limit) sorted.resize(row_limit);
  std::vector<Row> rows = {{"Name", "Time", "GB/s", "of the peak", "TFLOP/s", "of the peak", "Bound by"}};
  for (const auto& [line, average] : sorted) {
    rows.push_back({shortened(average->name, 55), as_time(line.seconds * 1e6),
                    printed("%.0f", average->bytes / line.seconds * 1e-9), share_of(line.by_memory, line.seconds),
                    average->flops > 0 ? in_tera(average->flops / line.seconds) : "--",
                    average->flops > 0 ? share_of(line.by_arithmetic, line.seconds) : "--", line.bound});
  }
  return set_in_columns(rows) + str("Peaks, as measured: ", printed("%.0f", peaks.bytes_per_second * 1e-9), " GB/s, ",
                                    in_tera(peaks.flops_per_second_16), " TFLOP/s of 16 bits, ",
                                    in_tera(peaks.flops_per_second_32), " of 32\n");
}

}  // namespace rush::profiler
