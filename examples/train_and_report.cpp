#include "examples/train_and_report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "examples/check_loss.h"
#include "examples/late_numbers.h"
#include "examples/stdout_check.h"

namespace examples {

void train_and_report(int64_t steps, RunLog& log, const std::function<TrainingStep()>& next,
                      const std::function<rush::Tensor()>& take) {
  constexpr int64_t kReports = 5;
  const auto start = std::chrono::steady_clock::now();
  LateNumbers losses;
  int64_t known = 0;  // steps whose loss is
  double last = 0;
  for (int64_t i = 1; i <= steps; ++i) {
    const TrainingStep step = next();
    losses.push(take());
    log.add_step(i, step.learning_rate, step.samples, step.count);
    const bool reporting = i % std::max<int64_t>(1, steps / kReports) == 0;
    while (const std::optional<rush::Tensor> loss = losses.pop(/*all=*/reporting || i == steps)) {
      last = loss->item<double>();
      check_loss(last, rush::str("step ", ++known));
      log.add(known, "loss/train", last);
    }
    if (!reporting) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::printf("step %lld: loss %.4f, %.1f s\n", static_cast<long long>(i), last, elapsed.count());
    check_stdout();
  }
}

}  // namespace examples
