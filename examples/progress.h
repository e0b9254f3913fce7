// Shows how far a training loop is: a bar that redraws itself in a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

struct Metric {
  std::string name;
  double value;
  int digits = 4;  // after the decimal point
};

/// What a progress line says.
struct ProgressState {
  std::string title;  // "epoch 1/2"
  std::string unit;   // what is counted: "images", "tokens"
  int64_t done = 0, total = 0;
  double elapsed = 0;  // seconds
  std::vector<Metric> metrics;
};

/// "epoch 1/2   63%  loss 0.0412  9,134 images/s  0:12 left"; at the end the time taken stands in place of the time
/// left.
std::string progress_text(const ProgressState& state);

/// The same with a bar after the title, cut to `width` columns.
std::string progress_bar(const ProgressState& state, int width);

struct ProgressOptions {
  std::FILE* out = stdout;
  std::optional<bool> terminal;  // may lines be redrawn? Default: `out` is a terminal
  double line_interval = 5;      // seconds between plain lines where it is none
};

/// Reports on a task of `total` units to a terminal (ten times a second at most) or, as plain lines, to a file or pipe.
class Progress {
 public:
  Progress(std::string title, int64_t total, std::string unit, ProgressOptions options = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Ends the line if `finish` was not reached, so that an error message starts on its own line.
  ~Progress();

  /// `done` units are finished; `metrics` replace the last ones. Cheap: prints only when it is time to.
  void update(int64_t done, std::vector<Metric> metrics);

  /// Prints a line of text above the bar.
  void note(std::string_view text) { print(options_.out, text); }
  /// Likewise, to stderr.
  void warn(std::string_view text) { print(stderr, text); }

  /// Prints the last state and ends the line. Later calls do nothing.
  void finish();

  /// Seconds since construction.
  double elapsed() const;

 private:
  using Clock = std::chrono::steady_clock;
  void print(std::FILE* to, std::string_view text);
  void show();
  void erase();

  ProgressOptions options_;
  bool terminal_;
  ProgressState state_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_show_ = start_;
  bool bar_shown_ = false;
  bool finished_ = false;
};

}  // namespace examples
