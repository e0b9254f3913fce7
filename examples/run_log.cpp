#include "examples/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/device/allocator.h"
#include "core/io/atomic_file.h"
#include "core/threads/parallel.h"
#include "examples/run_folder.h"
#include "examples/utf8.h"
#include "rushlight.h"

namespace examples {

using rush::Tensor;

namespace {

constexpr size_t kMostPoints = 4096;  // of a curve
constexpr size_t kFewPoints = 60;     // are drawn one by one
constexpr double kGiB = 1 << 30;
constexpr const char *kRate = "learning rate", *kMemory = "memory (GiB)/most";

// ---- charts ----

// "loss/train" -> "loss", "train"
std::pair<std::string, std::string> split(const std::string& name) {
  const size_t slash = name.find('/');
  return {name.substr(0, slash), slash == name.npos ? "" : name.substr(slash + 1)};
}

bool is_result(const std::string& group) { return group == "loss" || group == "accuracy"; }
// Whether a chart's curves have no noise.
bool is_exact(const Chart& chart) { return chart.title == kRate || chart.title == split(kMemory).first; }

void append_series(Chart& chart, const std::string& name, const std::vector<ChartPoint>& points) {
  using Style = ChartSeries::Style;
  constexpr const char* kColours[] = {"var(--first)", "var(--second)", "var(--third)"};
  const auto is_named = [](const ChartSeries& series) { return !series.name.empty(); };
  const auto before = std::count_if(chart.series.begin(), chart.series.end(), is_named);
  const std::string colour = kColours[std::min<std::ptrdiff_t>(before, 2)];
  if (points.size() > kFewPoints && is_exact(chart)) {
    chart.series.push_back({name, colour, Style::Line, points});
  } else if (points.size() > kFewPoints) {
    chart.series.push_back({"", colour, Style::Thin, points});
    chart.series.push_back({name, colour, Style::Line, smoothed(points, std::min<size_t>(12, points.size() / 20))});
  } else {
    chart.series.push_back({"", colour, Style::Line, points});
    chart.series.push_back({name, colour, Style::Dots, points});
  }
}

// Losses are drawn by their logarithms where they differ by far, shares near to 1 from close by, and all else from 0.
void set_axis(Chart& chart) {
  constexpr double kFar = 10, kCloseUp = 0.9;
  double low = INFINITY, high = 0, last = INFINITY;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) low = std::min(low, point.y), high = std::max(high, point.y);
    last = std::min(last, series.points.back().y);
  }
  if (chart.title == "loss") {
    if (low > 0 && high > kFar * low) chart.y_scale = Chart::Scale::Log;
    return;
  }
  chart.percent = chart.title == "accuracy";
  chart.y_from = chart.percent && last > kCloseUp ? kCloseUp : 0;
}

// ---- machine ----

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown";
}

std::string memory_text(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / kGiB);
  return text;
}

Facts machine(rush::Device device) {
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  Facts facts = {{"processor", processor()},
                 {"threads", rush::str(rush::get_num_threads(), " of ", ::sysconf(_SC_NPROCESSORS_ONLN))},
                 {"memory", memory_text(memory)}};
  if (device.type == rush::kCUDA) {
    const auto gpu = rush::cuda::get_device_properties(device.index);
    facts.emplace_back("GPU", gpu.name + ", " + memory_text(static_cast<double>(gpu.total_memory)));
  }
  return facts;
}

// ---- settings ----

rush::HParam parsed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && stop == text.data() + text.size()) return number;
  return text;
}

// A table in Markdown.
std::string markdown(const Facts& facts) {
  std::string out = "| setting | value |\n|---|---|\n";
  for (const auto& [name, value] : facts) out += rush::str("| ", name, " | ", value, " |\n");
  return out;
}

}  // namespace

void LogOptions::add_to(Options& options) {
  options.add("--logdir", &logdir, "folder for TensorBoard's event files; empty: none");
}

RunLog::RunLog(const std::string& program, const LogOptions& options, const std::string& folder, rush::Device device)
    : logdir_(options.logdir), device_(device) {
  if (!logdir_.empty()) make_folder(logdir_);
  const std::string& place = folder.empty() ? logdir_ : folder;
  if (!place.empty()) page_ = place + "/report.html";
  report.program = program;
  for (const auto& [name, value] : options.settings) report.settings.emplace_back(name, valid_utf8(value));
}

rush::SummaryWriter* RunLog::events() {
  if (logdir_.empty()) return nullptr;
  if (!writer_) {
    writer_ = std::make_unique<rush::SummaryWriter>(logdir_, rush::SummaryWriterOptions().purge_step(first_step_));
    writer_->add_text("settings", markdown(report.settings));
  }
  return writer_.get();
}

RunLog::Curve& RunLog::find(const std::string& name) {
  for (Curve& curve : curves_) {
    if (curve.name == name) return curve;
  }
  return curves_.emplace_back(Curve{name, {}});
}

void RunLog::add(int64_t step, const std::string& name, double value) {
  std::vector<ChartPoint>& points = find(name).points;
  points.push_back({static_cast<double>(step), value});
  if (points.size() == kMostPoints) {  // neighbours become one
    for (size_t i = 0; i < kMostPoints / 2; ++i) {
      points[i] = {points[2 * i + 1].x, (points[2 * i].y + points[2 * i + 1].y) / 2};
    }
    points.resize(kMostPoints / 2);
  }
  if (rush::SummaryWriter* writer = events()) writer->add_scalar(name, value, step);
}

void RunLog::add_step(int64_t step, double learning_rate, const char* samples, double count,
                      std::optional<double> seconds) {
  const Clock::time_point now = Clock::now();
  const double elapsed = seconds.value_or(std::chrono::duration<double>(now - last_step_).count());
  last_step_ = now;
  add(step, kRate, learning_rate);
  if (elapsed > 0) add(step, rush::str("samples a second/", samples), count / elapsed);
  add(step, kMemory, static_cast<double>(rush::allocator(device_.type).stats().max_allocated) / kGiB);
}

void RunLog::add_text(const std::string& heading, const std::string& text) {
  report.sections.push_back({heading, "", text_html(text)});
  if (rush::SummaryWriter* writer = events()) writer->add_text(heading, "```\n" + valid_utf8(text) + "\n```");
}

std::vector<ChartPoint> RunLog::curve(const std::string& name) const {
  for (const Curve& curve : curves_) {
    if (curve.name == name) return curve.points;
  }
  return {};
}

void RunLog::finish() {
  rush::NamedScalars results;
  int64_t last_step = 0;
  for (const auto& [name, points] : curves_) {
    const auto [group, series] = split(name);
    const auto same = [&group = group](const Chart& chart) { return chart.title == group; };
    auto chart = std::find_if(report.charts.begin(), report.charts.end(), same);
    if (chart == report.charts.end()) {
      chart = report.charts.insert(chart, Chart{});
      chart->title = group, chart->x_label = "step";
    }
    append_series(*chart, series, points);
    set_axis(*chart);
    last_step = std::max(last_step, static_cast<int64_t>(points.back().x));
    if (is_result(group)) results.emplace_back("final/" + name, points.back().y);
  }
  std::stable_partition(report.charts.begin(), report.charts.end(),
                        [](const Chart& chart) { return is_result(chart.title); });
  if (report.facts.empty()) report.facts = {{"steps", rush::str(last_step)}, {"device", rush::str(device_)}};
  report.machine = machine(device_);
  if (!page_.empty()) {
    rush::io::write_file_atomically(page_, render_report(report));
    std::printf("report: %s\n", page_.c_str());
  }
  if (rush::SummaryWriter* writer = events()) {
    rush::HParams settings;
    for (const auto& [name, value] : report.settings) settings.emplace_back(name, parsed(value));
    writer->add_hparams(settings, results, ".", last_step);
    writer->close();
  }
}

rush::optim::StateDict RunLog::state_dict() const {
  rush::optim::StateDict dict("curve");
  for (const auto& [name, points] : curves_) {
    Tensor values = rush::empty({static_cast<int64_t>(points.size()), 2}, rush::kFloat64);
    std::copy_n(&points[0].x, 2 * points.size(), values.data_ptr<double>());
    dict.insert(name, values);
  }
  return dict;
}

void RunLog::load_state_dict(const rush::optim::StateDict& dict) {
  std::vector<Curve> curves;
  for (const auto& item : dict) {
    const Tensor& values = item.value();
    RUSH_CHECK_VALUE(
        values.scalar_type() == rush::kFloat64 && values.dim() == 2 && values.size(1) == 2 && values.size(0) > 0,
        "the log's curve '", item.key(), "' is a tensor of ", values.scalar_type(), " ", values.sizes());
    const Tensor rows = values.cpu().contiguous();  // (N, 2)
    Curve& curve = curves.emplace_back(Curve{item.key(), {}});
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const double* at = rows.data_ptr<double>() + 2 * i;
      RUSH_CHECK_VALUE(at[0] >= 0 && at[0] < 0x1p53, "the log's curve '", item.key(), "' has a step ", at[0]);
      curve.points.push_back({at[0], at[1]});
      first_step_ = std::max(first_step_.value_or(0), static_cast<int64_t>(at[0]) + 1);
    }
  }
  curves_ = std::move(curves);
}

}  // namespace examples
