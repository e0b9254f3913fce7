#include "examples/train_and_report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "examples/check_loss.h"
#include "examples/stdout_check.h"

namespace examples {

void train_and_report(int64_t steps, const std::function<rush::Tensor()>& step) {
  constexpr int64_t kReports = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 1; i <= steps; ++i) {
    const rush::Tensor loss = step();
    if (i % std::max<int64_t>(1, steps / kReports) != 0) continue;
    const double value = loss.item<double>();  // waits for the device
    check_loss(value, rush::str("step ", i));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::printf("step %lld: loss %.4f, %.1f s\n", static_cast<long long>(i), value, elapsed.count());
    check_stdout();
  }
}

}  // namespace examples
