// Line charts as inline SVG. Colours come from the page: the CSS variables --ink, --faint, --line and one per series.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace examples {

struct ChartPoint {
  double x, y;
};

struct ChartSeries {
  enum class Style { Thin, Line, Dots };
  std::string name;   // shown in the legend; empty for a series that needs no entry
  std::string color;  // a CSS colour, such as "var(--first)"
  Style style;
  std::vector<ChartPoint> points;  // by increasing x; points that are not finite are left out
};

struct Chart {
  enum class Scale { Linear, Log };
  std::string title, x_label;
  Scale y_scale = Scale::Linear;
  bool percent = false;          // y is a share of 1
  std::optional<double> y_from;  // where the vertical axis begins; lines are cut there. Default: all points show
  std::vector<ChartSeries> series;
};

/// Draws the chart as one `<svg>` element that scales with its container. A chart without points says so.
std::string svg_chart(const Chart& chart);

/// A noisy curve's trend: each y is the mean of the finite ones at most `reach` points before or after it.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points, size_t reach);

/// Replaces the characters that mean something in HTML.
std::string escape_html(const std::string& text);

}  // namespace examples
