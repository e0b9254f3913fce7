#include "examples/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/str.h"

namespace examples {
namespace {

// The drawing's own units; the page scales it.
constexpr double kWidth = 400, kHeight = 260;
constexpr double kLeft = 60, kRight = 16, kTop = 44, kBottom = 42;
constexpr int kWantedTicks = 5;

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string shortest(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void include(double v) { low = std::min(low, v), high = std::max(high, v); }
  bool empty() const { return low > high; }
};

// 1, 2 or 5 times a power of ten, near to `span` divided by the wanted number of ticks.
double nice_step(double span) {
  const double raw = span / kWantedTicks, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

// One axis: from values to positions, and where its ticks are.
struct Axis {
  Chart::Scale scale;
  double low, high;    // values at the ends
  double start, stop;  // their positions
  std::vector<double> ticks;

  double warp(double value) const { return scale == Chart::Scale::Log ? std::log10(value) : value; }
  double at(double value) const {
    return start + (warp(value) - warp(low)) / (warp(high) - warp(low)) * (stop - start);
  }

  static Axis linear(Range range, double start, double stop, bool tight) {
    const double pad = range.low < range.high ? 0 : range.low == 0 ? .5 : std::abs(range.low) / 2;
    range.low -= pad, range.high += pad;
    const double step = nice_step(range.high - range.low);
    // Whole ticks around the values, or, for a tight axis, within them.
    const double first = (tight ? std::ceil(range.low / step) : std::floor(range.low / step));
    const double last = (tight ? std::floor(range.high / step) : std::ceil(range.high / step));
    Axis axis{
        Chart::Scale::Linear, tight ? range.low : first * step, tight ? range.high : last * step, start, stop, {}};
    for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
    return axis;
  }

  static Axis log(Range range, double start, double stop) {
    if (range.low == range.high) range.low /= 2, range.high *= 2;
    Axis axis{Chart::Scale::Log, range.low * .9, range.high * 1.1, start, stop, {}};
    // 1, 2, 5 in each decade while that is few enough, else the powers of ten.
    const double decades = std::log10(axis.high / axis.low);
    for (double power = std::floor(std::log10(axis.low)); power <= std::log10(axis.high); ++power) {
      for (double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10, power);
        if ((factor == 1 || decades < 3) && axis.low <= value && value <= axis.high) axis.ticks.push_back(value);
      }
    }
    return axis;
  }
};

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    Range x_range, y_range;
    for (const ChartSeries& series : chart.series) {
      for (const ChartPoint& point : series.points) {
        if (!drawable(point)) continue;
        x_range.include(point.x);
        y_range.include(point.y);
      }
    }
    empty_ = x_range.empty();
    if (empty_) x_range = y_range = {.low = 1, .high = 2};
    if (chart.y_from) y_range.low = std::min(*chart.y_from, y_range.high);
    x_ = Axis::linear(x_range, kLeft, kWidth - kRight, true);
    const double bottom = kHeight - kBottom;
    y_ = chart.y_scale == Chart::Scale::Log ? Axis::log(y_range, bottom, kTop)
                                            : Axis::linear(y_range, bottom, kTop, false);
  }

  std::string svg() {
    out_ = "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 " + shortest(kWidth) + " " + shortest(kHeight) +
           "\" aria-label=\"" + escape_html(chart_.title) + "\">\n";
    text(kLeft, 18, "start", "title", chart_.title);
    if (empty_) {
      text(kWidth / 2, kHeight / 2, "middle", "tick", "no data");
    } else {
      axes();
      lines();
      dots();
      legend();
    }
    return out_ + "</svg>\n";
  }

 private:
  bool drawable(const ChartPoint& p) const {
    return std::isfinite(p.x) && std::isfinite(p.y) && (chart_.y_scale == Chart::Scale::Linear || p.y > 0);
  }

  std::string y_text(double value) const {
    if (!chart_.percent) return shortest(value);
    const double step = y_.ticks.size() > 1 ? 100 * (y_.ticks[1] - y_.ticks[0]) : 1;
    return number(100 * value, step < .099 ? 2 : step < .99 ? 1 : 0) + "%";
  }

  void text(double x, double y, const char* anchor, const char* css_class, const std::string& content) {
    out_ += "<text x=\"" + number(x, 1) + "\" y=\"" + number(y, 1) + "\" text-anchor=\"" + anchor + "\" class=\"" +
            css_class + "\">" + escape_html(content) + "</text>\n";
  }

  void rule(double x1, double y1, double x2, double y2, const char* css_class) {
    out_ += "<line x1=\"" + number(x1, 1) + "\" y1=\"" + number(y1, 1) + "\" x2=\"" + number(x2, 1) + "\" y2=\"" +
            number(y2, 1) + "\" class=\"" + css_class + "\"/>\n";
  }

  void axes() {
    const double bottom = kHeight - kBottom;
    for (double tick : y_.ticks) {
      rule(kLeft, y_.at(tick), kWidth - kRight, y_.at(tick), "grid");
      text(kLeft - 8, y_.at(tick) + 4, "end", "tick", y_text(tick));
    }
    rule(kLeft, bottom, kWidth - kRight, bottom, "axis");
    for (double tick : x_.ticks) {
      rule(x_.at(tick), bottom, x_.at(tick), bottom + 4, "axis");
      text(x_.at(tick), bottom + 17, "middle", "tick", shortest(std::abs(tick) < 1e-12 ? 0 : tick));
    }
    text((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle", "tick", chart_.x_label);
  }

  // In an <svg> of their own, which cuts what lies below the axis.
  void lines() {
    const double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom;
    out_ += "<svg x=\"" + shortest(kLeft) + "\" y=\"" + shortest(kTop) + "\" width=\"" + shortest(width) +
            "\" height=\"" + shortest(height) + "\" viewBox=\"" + shortest(kLeft) + " " + shortest(kTop) + " " +
            shortest(width) + " " + shortest(height) + "\">\n";
    for (const ChartSeries& series : chart_.series) {
      if (series.style != ChartSeries::Style::Dots) line(series);
    }
    out_ += "</svg>\n";
  }

  void line(const ChartSeries& series) {
    std::string points;
    for (const ChartPoint& point : series.points) {
      if (drawable(point)) points += rush::str(number(x_.at(point.x), 1), ",", number(y_.at(point.y), 1), " ");
    }
    const char* css_class = series.style == ChartSeries::Style::Thin ? "thin" : "line";
    out_ += rush::str("<polyline class=\"", css_class, "\" style=\"stroke:", series.color, "\" points=\"", points,
                      "\"/>\n");
  }

  void dots() {
    for (const ChartSeries& series : chart_.series) {
      if (series.style != ChartSeries::Style::Dots) continue;
      for (const ChartPoint& point : series.points) {
        if (drawable(point) && point.y >= y_.low) dot(series, point);
      }
    }
  }

  // Whoever points at it sees its value.
  void dot(const ChartSeries& series, const ChartPoint& point) {
    const double x = x_.at(point.x), y = y_.at(point.y);
    const std::string value = chart_.percent ? number(100 * point.y, 2) + "%" : shortest(point.y);
    out_ += "<circle cx=\"" + number(x, 1) + "\" cy=\"" + number(y, 1) + "\" r=\"4.5\" style=\"fill:" + series.color +
            "\"><title>" + escape_html(series.name + ", " + chart_.x_label + " " + shortest(point.x) + ": " + value) +
            "</title></circle>\n";
  }

  void legend() {
    double right = kWidth - kRight;
    for (auto series = chart_.series.rbegin(); series != chart_.series.rend(); ++series) {
      if (series->name.empty()) continue;
      constexpr double kCharacter = 7.2, kGap = 30;
      text(right, 18, "end", "tick", series->name);
      right -= kCharacter * static_cast<double>(series->name.size()) + 10;
      out_ += "<circle cx=\"" + number(right, 1) + "\" cy=\"14\" r=\"4.5\" style=\"fill:" + series->color + "\"/>\n";
      right -= kGap - 10;
    }
  }

  const Chart& chart_;
  bool empty_;
  Axis x_{}, y_{};
  std::string out_;
};

}  // namespace

std::string svg_chart(const Chart& chart) { return Drawing(chart).svg(); }

std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points, size_t reach) {
  std::vector<ChartPoint> out;
  double sum = 0, count = 0;  // of the finite values in [i - reach, i + reach]
  auto add = [&](size_t i, int sign) {
    if (i < points.size() && std::isfinite(points[i].y)) sum += sign * points[i].y, count += sign;
  };
  for (size_t i = 0; i < reach; ++i) add(i, 1);
  for (size_t i = 0; i < points.size(); ++i) {
    add(i + reach, 1);
    if (i > reach) add(i - reach - 1, -1);
    if (count > 0) out.push_back({points[i].x, sum / count});
  }
  return out;
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace examples
