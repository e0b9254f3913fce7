// The picture of a trained graph convolutional net.
#include <algorithm>
#include <cstdio>

#include "examples/gcn/gcn.h"
#include "examples/svg_chart.h"
#include "rushlight.h"

namespace examples {

using namespace rush;

namespace {

constexpr double kSide = 640, kMargin = 16, kCaption = 24, kCharts = 240;  // heights, from above, and kSide between
constexpr const char* kCurve = "#1667b7";  // not a CSS variable, which few viewers of SVG files know
constexpr int64_t kMostEdges = 6000;       // drawn; more would only be a grey area

// Positions (N, 2) within the picture: the two directions in which the embedding differs most.
Tensor positions(const Tensor& embedding) {
  const Tensor centred = (embedding - embedding.mean(0)).to(kFloat64);
  const Tensor directions = std::get<2>(linalg_svd(centred.t().mm(centred), false));  // rows, by descending variance
  const Tensor points = centred.mm(directions.slice(0, 0, 2).t());
  const Tensor low = points.amin(0), high = points.amax(0);
  const Tensor corner = tensor({kMargin, kMargin + kCaption}, kFloat64);
  return ((points - low) / (high - low).clamp_min(1e-12) * (kSide - 2 * kMargin) + corner).contiguous();
}

template <class... Args>
void append(std::string& out, const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), format, args...);
  out += text;
}

void append_edges(std::string& out, const Tensor& edges, const Tensor& points) {
  const Tensor pairs = edges.to_sparse().indices();
  const int64_t count = pairs.size(1), step = std::max<int64_t>(1, count / kMostEdges);
  const int64_t *from = pairs.data_ptr<int64_t>(), *to = from + count;
  const double* at = points.data_ptr<double>();
  out += "<path fill='none' stroke='#888' stroke-opacity='0.15' stroke-width='0.5' d='";
  for (int64_t e = 0; e < count; e += step) {
    if (from[e] > to[e]) continue;  // every edge is there twice
    append(out, "M%.1f %.1fL%.1f %.1f", at[2 * from[e]], at[2 * from[e] + 1], at[2 * to[e]], at[2 * to[e] + 1]);
  }
  out += "'/>\n";
}

void append_nodes(std::string& out, const Tensor& labels, const Tensor& points) {
  const int64_t* label = labels.data_ptr<int64_t>();
  const double classes = static_cast<double>(labels.max().item<int64_t>() + 1);
  const double* at = points.data_ptr<double>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    append(out, "<circle cx='%.1f' cy='%.1f' r='2.5' fill='hsl(%.0f,70%%,45%%)'/>\n", at[2 * i], at[2 * i + 1],
           360 * static_cast<double>(label[i]) / classes);
  }
}

std::vector<ChartPoint> curve(const std::vector<double>& values) {
  std::vector<ChartPoint> points;
  for (size_t i = 0; i < values.size(); ++i) points.push_back({static_cast<double>(i + 1), values[i]});
  return points;
}

}  // namespace

std::string gcn_picture(const BlockGraph& graph, const GCNTraining& training) {
  const Tensor points = positions(training.embedding);
  Chart loss, accuracy;
  loss.title = "training loss (cross entropy, nats)";
  accuracy.title = "accuracy on other nodes";
  loss.x_label = accuracy.x_label = "epoch";
  accuracy.percent = true;
  loss.series = {{"", kCurve, ChartSeries::Style::Line, curve(training.train_loss)}};
  accuracy.series = {{"", kCurve, ChartSeries::Style::Line, curve(training.test_accuracy)}};
  std::string out;
  append(out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f'>\n", kSide, kCaption + kSide + kCharts);
  out += R"(<style>
svg { font-family: sans-serif; }
.chart text { fill: #222; font-size: 12px; }
.chart .title { font-weight: 600; }
.chart .tick { fill: #666; }
.chart .grid { stroke: #ddd; }
.chart .axis { stroke: #666; }
.chart polyline { fill: none; stroke-width: 2.2; }
</style>
)";
  out += "<rect width='100%' height='100%' fill='white'/>\n";
  append(out, "<text x='%.0f' y='%.0f' font-size='14' fill='#222'>%s</text>\n", kMargin, kCaption - 4,
         "Nodes by principal components of the embedding, coloured by community");
  append_edges(out, graph.edges, points);
  append_nodes(out, graph.labels, points);
  const auto place = [&](const Chart& chart, double x) {
    append(out, "<svg x='%.0f' y='%.0f' width='%.0f' height='220'>", x, kCaption + kSide + 10, kSide / 2 - 10);
    out += svg_chart(chart) + "</svg>\n";
  };
  place(loss, 5);
  place(accuracy, kSide / 2 + 5);
  return out + "</svg>\n";
}

}  // namespace examples
