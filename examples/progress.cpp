#include "examples/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace examples {
namespace {

constexpr double kRedrawInterval = 0.1;  // seconds
constexpr int kDefaultWidth = 100;
constexpr int kMinBar = 8, kMaxBar = 30;  // columns
constexpr char kEraseLine[] = "\r\033[K";

std::string format(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// 1234567 -> "1,234,567"
std::string with_commas(double value) {
  std::string text = format(std::min(value, 1e15), 0);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

// 0:07, 12:34, 1:02:03
std::string clock_text(double seconds) {
  constexpr double kLongest = 100.0 * 3600;
  if (!(seconds < kLongest)) return "?";
  const int64_t all = std::llround(seconds);
  char text[32];
  if (all >= 3600) {
    std::snprintf(text, sizeof text, "%d:%02d:%02d", static_cast<int>(all / 3600), static_cast<int>(all / 60 % 60),
                  static_cast<int>(all % 60));
  } else {
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(all / 60), static_cast<int>(all % 60));
  }
  return text;
}

double fraction(const ProgressState& state) {
  return state.total > 0 ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0) : 1;
}

// " 63%  loss 0.0412  9,134 images/s  0:12 left"
std::string figures(const ProgressState& state) {
  const std::string percent = format(std::floor(100 * fraction(state)), 0) + "%";
  std::string text = std::string(4 - std::min<size_t>(4, percent.size()), ' ') + percent;
  for (const Metric& metric : state.metrics) text += "  " + metric.name + " " + format(metric.value, metric.digits);
  if (state.elapsed > 0 && state.done > 0) {
    const double rate = static_cast<double>(state.done) / state.elapsed;
    const double left = static_cast<double>(state.total - state.done) / rate;
    text += "  " + with_commas(rate) + " " + state.unit + "/s";
    text += state.done < state.total ? "  " + clock_text(left) + " left" : "  " + clock_text(state.elapsed);
  }
  return text;
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value && *value) return std::strstr(value, "UTF-8") || std::strstr(value, "utf8");
  }
  return false;
}

std::string bar(double fraction, int columns) {
  const int full = static_cast<int>(fraction * columns);
  static const bool utf8 = speaks_utf8();
  if (!utf8)
    return "[" + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(columns - full), '.') +
           "]";
  std::string text;
  for (int i = 0; i < columns; ++i) text += i < full ? "━" : i == full ? "╸" : " ";
  return text;
}

int terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultWidth;
}

// A terminal that cannot move its cursor gets plain lines.
bool can_redraw(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) && term && std::strcmp(term, "dumb") != 0;
}

}  // namespace

std::string progress_text(const ProgressState& state) { return state.title + "  " + figures(state); }

std::string progress_bar(const ProgressState& state, int width) {
  const std::string numbers = figures(state);
  const int room = width - static_cast<int>(state.title.size() + numbers.size()) - 5;  // two gaps, two brackets, cursor
  const std::string line = room < kMinBar
                               ? progress_text(state).substr(0, static_cast<size_t>(std::max(0, width - 1)))
                               : state.title + "  " + bar(fraction(state), std::min(room, kMaxBar)) + numbers;
  return line;
}

Progress::Progress(std::string title, int64_t total, std::string unit, ProgressOptions options)
    : options_(options), terminal_(options.terminal.value_or(can_redraw(options.out))) {
  state_.title = std::move(title);
  state_.unit = std::move(unit);
  state_.total = total;
  // The first plain line comes after an interval: by then it says something.
  if (!terminal_)
    next_show_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.line_interval));
}

Progress::~Progress() {
  if (bar_shown_) std::fputs("\n", options_.out);
}

double Progress::elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::update(int64_t done, std::vector<Metric> metrics) {
  state_.done = done;
  state_.metrics = std::move(metrics);
  if (finished_ || Clock::now() < next_show_) return;
  show();
  const double pause = terminal_ ? kRedrawInterval : options_.line_interval;
  next_show_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause));
}

void Progress::print(std::FILE* to, std::string_view text) {
  const bool redraw = bar_shown_;
  erase();
  std::fflush(options_.out);
  std::fprintf(to, "%.*s\n", static_cast<int>(text.size()), text.data());
  if (redraw) show();
  std::fflush(options_.out);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  show();
  if (bar_shown_) std::fputs("\n", options_.out);
  bar_shown_ = false;
  std::fflush(options_.out);
}

void Progress::show() {
  state_.elapsed = elapsed();
  if (terminal_) {
    erase();
    std::fputs(progress_bar(state_, terminal_width(options_.out)).c_str(), options_.out);
    bar_shown_ = true;
  } else {
    std::fprintf(options_.out, "%s\n", progress_text(state_).c_str());
  }
  std::fflush(options_.out);
}

void Progress::erase() {
  if (bar_shown_) std::fputs(kEraseLine, options_.out);
  bar_shown_ = false;
}

}  // namespace examples
