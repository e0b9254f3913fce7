#include "examples/mnist/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>
#include <utility>

#include "core/error/error.h"
#include "core/io/png.h"
#include "examples/data_uri.h"
#include "examples/mnist/report_page.h"
#include "examples/mnist/synthetic_digits.h"

namespace examples {
namespace {

constexpr size_t kGridDigits = 120;
constexpr size_t kWorstMistakes = 24;
constexpr size_t kSmoothing = 12;  // steps to either side
constexpr double kCloseUp = 0.9;   // a net better than this is looked at from here up

void check(const MnistReport& report) {
  const size_t count = report.labels.size();
  RUSH_CHECK_VALUE(count > 0, "render_report: the test set is empty");
  RUSH_CHECK_VALUE(report.predicted.size() == count && report.confidence.size() == count &&
                       report.pixels.size() == count * kDigitPixels,
                   "render_report: ", count, " labels, but ", report.predicted.size(), " predictions, ",
                   report.confidence.size(), " confidences and ", report.pixels.size(), " pixels");
  for (const std::vector<int64_t>* digits : {&report.labels, &report.predicted}) {
    for (int64_t digit : *digits) RUSH_CHECK_VALUE(0 <= digit && digit <= 9, "render_report: ", digit, " is no digit");
  }
}

std::string percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f%%", digits, 100 * share);
  return text;
}

// Replaces each {{name}} of the page. A value is never searched for names: it may hold text from outside.
std::string fill(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const size_t open = std::min(page.find("{{", at), page.size()), close = page.find("}}", open);
    out += page.substr(at, open - at);
    if (open == page.size()) break;
    const std::string_view name = page.substr(open + 2, close - open - 2);
    auto value = std::find_if(values.begin(), values.end(), [name](const auto& pair) { return pair.first == name; });
    RUSH_CHECK(value != values.end(), "render_report: the page wants '", name, "'");
    out += value->second;
    at = close + 2;
  }
  return out;
}

std::string image(const MnistReport& report, size_t i) {
  const std::span pixels = std::span(report.pixels).subspan(i * kDigitPixels, kDigitPixels);
  return "<img alt=\"" + std::to_string(report.labels[i]) + "\" width=\"28\" height=\"28\" src=\"" +
         data_uri("image/png", rush::io::encode_png(kDigitSize, kDigitSize, 1, pixels)) + "\">";
}

bool correct(const MnistReport& report, size_t i) { return report.labels[i] == report.predicted[i]; }

// "7", or for a mistake "~9~ 7": the answer struck out, then the right digit.
std::string answer(const MnistReport& report, size_t i) {
  const std::string label = "<b>" + std::to_string(report.labels[i]) + "</b>";
  return correct(report, i) ? label : "<s>" + std::to_string(report.predicted[i]) + "</s> " + label;
}

std::string fact_tiles(const MnistReport& report) {
  std::string out;
  for (const auto& [name, value] : report.facts) {
    out += "<div class=\"card\"><dt>" + escape_html(name) + "</dt><dd>" + escape_html(value) + "</dd></div>\n";
  }
  return out;
}

std::string curves(Chart chart, const std::vector<ChartPoint>& train, const std::vector<ChartPoint>& test) {
  using Style = ChartSeries::Style;
  chart.x_label = "epoch";
  chart.series = {{"", "var(--first)", Style::Thin, train},
                  {"training", "var(--first)", Style::Line, smoothed(train, kSmoothing)},
                  {"", "var(--second)", Style::Line, test},
                  {"test", "var(--second)", Style::Dots, test}};
  return svg_chart(chart);
}

std::string loss_chart(const MnistReport& report) {
  Chart chart;
  chart.title = "Loss (cross entropy, nats)";
  chart.y_scale = Chart::Scale::Log;
  return curves(std::move(chart), report.train_loss, report.test_loss);
}

std::string accuracy_chart(const MnistReport& report) {
  Chart chart;
  chart.title = "Accuracy";
  chart.percent = true;
  const bool good = !report.test_accuracy.empty() && report.test_accuracy.front().y > kCloseUp;
  if (good) chart.y_from = kCloseUp;
  return curves(std::move(chart), report.train_accuracy, report.test_accuracy);
}

std::string digit_grid(const MnistReport& report, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += correct(report, i) ? "<figure>" : "<figure class=\"wrong\">";
    out += image(report, i) + "<figcaption>" + answer(report, i) + "</figcaption></figure>\n";
  }
  return out;
}

// NaN, of a net that diverged, counts as no confidence: comparisons with it would not be an order.
float confidence(const MnistReport& report, size_t i) {
  return std::isnan(report.confidence[i]) ? 0.f : report.confidence[i];
}

std::vector<size_t> mistakes_by_confidence(const MnistReport& report) {
  std::vector<size_t> wrong;
  for (size_t i = 0; i < report.labels.size(); ++i) {
    if (!correct(report, i)) wrong.push_back(i);
  }
  std::stable_sort(wrong.begin(), wrong.end(),
                   [&](size_t a, size_t b) { return confidence(report, a) > confidence(report, b); });
  return wrong;
}

std::string mistake_cards(const MnistReport& report, std::span<const size_t> mistakes) {
  std::string out;
  for (size_t i : mistakes) {
    const std::string sure = percent(confidence(report, i), 1);
    out += "<figure class=\"card\">" + image(report, i) + "<figcaption>" + answer(report, i) + " &nbsp;" + sure +
           "<div class=\"bar\"><i style=\"width:" + sure + "\"></i></div>no. " + std::to_string(i) +
           "</figcaption></figure>\n";
  }
  return out;
}

// Shares of each row; the diagonal in one colour, mistakes in another and stronger, or nobody would see them.
std::string confusion_table(const MnistReport& report) {
  std::array<std::array<int64_t, 10>, 10> counts{};
  for (size_t i = 0; i < report.labels.size(); ++i) {
    ++counts[static_cast<size_t>(report.labels[i])][static_cast<size_t>(report.predicted[i])];
  }
  std::string out = "<tr><th></th>";
  for (int digit = 0; digit < 10; ++digit) out += "<th scope=\"col\">" + std::to_string(digit) + "</th>";
  out += "<th scope=\"col\">right</th></tr>\n";
  for (size_t row = 0; row < 10; ++row) {
    const double total = static_cast<double>(std::accumulate(counts[row].begin(), counts[row].end(), int64_t{0}));
    out += "<tr><th scope=\"row\">" + std::to_string(row) + "</th>";
    for (size_t column = 0; column < 10; ++column) {
      const int64_t count = counts[row][column];
      const double share = total > 0 ? static_cast<double>(count) / total : 0;
      const double tone = row == column ? .55 * share : std::min(.75, 4 * std::sqrt(share));
      out += "<td style=\"--tone:var(" + std::string(row == column ? "--second" : "--wrong") +
             ");--share:" + percent(tone, 0) + "\">" + (count > 0 ? std::to_string(count) : "") + "</td>";
    }
    out += "<th>" + (total > 0 ? percent(static_cast<double>(counts[row][row]) / total, 1) : "") + "</th></tr>\n";
  }
  return out;
}

std::string mistakes_text(size_t shown, size_t all) {
  if (all == 0) return "There are none.";
  return rush::str(
      shown == all ? "All " : "The first ", shown, " of ", all,
      ", most confident first: the answer, struck out; the right digit; how sure the net was of its answer.");
}

}  // namespace

std::string render_report(const MnistReport& report) {
  check(report);
  const size_t count = report.labels.size(), grid_count = std::min(count, kGridDigits);
  const std::vector<size_t> mistakes = mistakes_by_confidence(report);
  const std::span worst = std::span(mistakes).first(std::min(mistakes.size(), kWorstMistakes));
  const double accuracy = 1 - static_cast<double>(mistakes.size()) / static_cast<double>(count);
  return fill(kReportPage, {{"accuracy", percent(accuracy, 2)},
                            {"count", std::to_string(count)},
                            {"errors", std::to_string(mistakes.size())},
                            {"dataset", escape_html(report.dataset)},
                            {"facts", fact_tiles(report)},
                            {"loss_chart", loss_chart(report)},
                            {"accuracy_chart", accuracy_chart(report)},
                            {"grid_count", std::to_string(grid_count)},
                            {"grid", digit_grid(report, grid_count)},
                            {"mistakes_text", mistakes_text(worst.size(), mistakes.size())},
                            {"mistakes", mistake_cards(report, worst)},
                            {"confusion", confusion_table(report)}});
}

}  // namespace examples
