// What a run logs of itself: curves, for its report and for TensorBoard.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "examples/options.h"
#include "examples/report.h"
#include "nn/summary/summary_writer.h"
#include "optim/state/state_dict.h"

namespace examples {

/// The option --logdir, and what the log says of all others.
struct LogOptions {
  std::string logdir;
  Facts settings;

  /// Adds the option to a program's.
  void add_to(Options& options);
};

/// The log of one run. A curve has a name such as "loss/train": the report draws curves with the same beginning into
/// one chart. It is a part of the run's checkpoint, so that the report of a run that went on shows all of it, and
/// TensorBoard hides what had been logged after that checkpoint.
class RunLog {
 public:
  /// A log that nobody reads.
  RunLog() = default;
  /// Events go to options.logdir, the report to `folder`, or where that is empty to options.logdir; empty is nowhere.
  /// `device` is the one whose memory is logged. Makes the folder of the events. Throws rush::IOError.
  RunLog(const std::string& program, const LogOptions& options, const std::string& folder, rush::Device device);

  /// Adds a value to a curve. `step` says how many were done; it increases.
  void add(int64_t step, const std::string& curve, double value);
  /// Adds what is known of every step: its learning rate, how much memory was in use at most, and how many `samples`
  /// ("images") a second it took, by the time since the last call unless `seconds` are given.
  void add_step(int64_t step, double learning_rate, const char* samples, double count,
                std::optional<double> seconds = std::nullopt);
  /// Text that the run made.
  void add_text(const std::string& heading, const std::string& text);

  std::vector<ChartPoint> curve(const std::string& name) const;

  /// What the program itself says in the report; charts, settings and machine are filled in.
  Report report;
  /// Writes the report, and says where; ends the events with the run's settings and results. Throws rush::IOError.
  void finish();

  // As a part of a checkpoint.
  rush::optim::StateDict state_dict() const;
  void load_state_dict(const rush::optim::StateDict& dict);

 private:
  using Clock = std::chrono::steady_clock;
  struct Curve {
    std::string name;
    std::vector<ChartPoint> points;
  };

  Curve& find(const std::string& name);
  // Null where no events are wanted. Made when the first one is, when it is known after which step the run goes on.
  rush::SummaryWriter* events();

  std::string logdir_, page_;
  rush::Device device_;
  std::vector<Curve> curves_;
  std::optional<int64_t> first_step_;  // of a run that goes on
  std::unique_ptr<rush::SummaryWriter> writer_;
  Clock::time_point last_step_ = Clock::now();
};

}  // namespace examples
