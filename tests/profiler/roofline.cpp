// How near calls came to what a device can do.
#include "core/profiler/roofline.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;
using namespace rush::profiler;

namespace {

// The row of `name`: its cells from the second on.
std::string row_of(const std::string& table, const std::string& name) {
  const size_t begin = table.find(name);
  REQUIRE(begin != table.npos);
  std::string row = table.substr(begin + name.size(), table.find('\n', begin) - begin - name.size());
  std::string cells;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] != ' ' || (!cells.empty() && cells.back() != ' ')) cells += row[i];
  }
  return cells;
}

Average call(const char* name, double microseconds, double flops, double bytes) {
  Average average;
  average.name = name;
  average.count = 1;
  average.cpu_time_total = average.self_cpu_time_total = microseconds;
  average.flops = flops;
  average.bytes = bytes;
  return average;
}

}  // namespace

TEST_CASE("a call is bounded by memory, arithmetic, or neither") {
  const DevicePeaks peaks{.bytes_per_second = 1e11, .flops_per_second_16 = 4e12, .flops_per_second_32 = 1e12};
  KeyAverages averages;
  averages.push_back(call("copies", 1000, 0, 8e7));     // 80 GB/s
  averages.push_back(call("product", 1000, 9e8, 1e6));  // 0.9 TFLOP/s
  averages.push_back(call("small", 10, 100, 800));
  Average half = call("half", 1000, 3e9, 1e6);
  half.flops_16 = half.flops;
  averages.push_back(half);
  Average outer = call("outer", 1000, 0, 8e7);  // hands its work on
  outer.self_cpu_time_total = 1;
  averages.push_back(outer);
  const std::string table = roofline_table(averages, peaks);
  CHECK(row_of(table, "outer") == "1.000ms 80 80% -- -- memory ");
  CHECK(row_of(table, "copies") == "1.000ms 80 80% -- -- memory ");
  CHECK(row_of(table, "product") == "1.000ms 1 1% 0.9 90% arithmetic ");
  CHECK(row_of(table, "half") == "1.000ms 1 1% 3.0 75% arithmetic ");
  CHECK(row_of(table, "small") == "10.000us 0 0% 0.000 0% latency ");
  CHECK(table.find("100 GB/s, 4.0 TFLOP/s of 16 bits, 1.0 of 32") != table.npos);
  const DevicePeaks of_a_core{.bytes_per_second = 1e10, .flops_per_second_16 = 2e10, .flops_per_second_32 = 6e10};
  CHECK(roofline_table(averages, of_a_core).find("0.020 TFLOP/s of 16 bits, 0.060 of 32") != std::string::npos);
}

TEST_CASE("peaks must be positive, and tensors in lists have bytes") {
  CHECK_THROWS_AS(roofline_table(KeyAverages(), DevicePeaks()), ValueError);
  const Tensor x = ones({1000});
  Profile profile({.with_flops = true});
  cat({x, x});
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  REQUIRE(averages.find("aten::cat"));
  CHECK(averages.find("aten::cat")->bytes == 4 * 4000);
}

TEST_CASE("a device's call is bounded by the host where that takes longer, or waits") {
  const DevicePeaks peaks{.bytes_per_second = 1e12, .flops_per_second_16 = 1e14, .flops_per_second_32 = 1e13};
  KeyAverages averages;
  Average kernel = call("kernel", 0, 0, 0), slow = call("slow", 20, 0, 1000), waits = call("waits", 100, 0, 1000);
  kernel.kind = EventKind::Device;
  slow.device_time_total = waits.device_time_total = 2;
  waits.self_wait_time_total = 90;
  averages.insert(averages.end(), {kernel, slow, waits});
  const std::string table = roofline_table(averages, peaks);
  CHECK(row_of(table, "slow").ends_with("host "));
  CHECK(row_of(table, "waits").ends_with("wait "));
  CHECK(table.find("kernel ") == table.npos);
}

TEST_CASE("this processor's peaks are measured once, and a profile has the bytes of its calls") {
  const DevicePeaks& peaks = measured_peaks(kCPU);
  CHECK(peaks.bytes_per_second > 1e8);
  CHECK(peaks.flops_per_second_32 > 1e8);
  CHECK(peaks.flops_per_second_16 > 0);
  CHECK(&measured_peaks(kCPU) == &peaks);
  CHECK_THROWS_WITH_AS(measured_peaks(kMeta), doctest::Contains("meta: tensors of this device have no data"),
                       NotImplementedError);
  const Tensor x = ones({1000});
  Profile profile({.with_flops = true});
  x.mul(x);
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  REQUIRE(averages.find("aten::mul.Tensor"));
  CHECK(averages.find("aten::mul.Tensor")->bytes == 3 * 4000);
}
