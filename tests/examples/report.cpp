#include "examples/mnist/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/error/error.h"
#include "examples/mnist/synthetic_digits.h"

using namespace examples;

namespace {

// Forty digits; `wrong` of them are misread, the last with the highest confidence.
MnistReport small_report(size_t wrong) {
  constexpr size_t count = 40;
  Digits digits = draw_digits(count, 1);
  MnistReport report;
  report.dataset = "digits <drawn> & \"tested\"";
  report.facts = {{"folder", "a<b>&{{count}}"}};
  report.train_loss = {{0, 2.3}, {1, 0.1}, {2, 0.03}};
  report.train_accuracy = {{0, .1}, {1, .97}, {2, .99}};
  report.test_loss = {{1, 0.08}, {2, 0.04}};
  report.test_accuracy = {{1, .98}, {2, .985}};
  report.pixels = digits.pixels;
  report.labels = report.predicted = digits.labels;
  report.confidence.assign(count, .9f);
  for (size_t i = 0; i < wrong; ++i) {
    report.predicted[i] = (report.labels[i] + 1) % 10;
    report.confidence[i] = .5f + .01f * static_cast<float>(i);
  }
  return report;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("render_report: one page that needs nothing else") {
  const std::string page = render_report(small_report(4));
  CHECK(page.starts_with("<!DOCTYPE html>"));
  for (const char* outside : {"http:", "https:", "//", "<script", "<link", "@import"}) {
    CAPTURE(outside);
    // Base64 may hold "//", so images are left out of the search.
    std::string text = page;
    for (size_t at = text.find("src=\""); at != std::string::npos; at = text.find("src=\"", at + 1)) {
      CHECK(text.compare(at + 5, 22, "data:image/png;base64,") == 0);
      text.erase(at + 5, text.find('"', at + 5) - at - 5);
    }
    CHECK(text.find(outside) == std::string::npos);
  }
  CHECK(page.find("<h1>90.00%</h1>") != std::string::npos);
  CHECK(page.find("of 40 test digits are read correctly, 4 are not") != std::string::npos);
  CHECK(count(page, "<svg class=\"chart\"") == 2);
  CHECK(count(page, "<figure") == 40 + 4);
  CHECK(count(page, "<figure class=\"wrong\">") == 4);
  for (const char* tag : {"div", "figure", "figcaption", "svg", "table", "tr", "td", "th", "p", "dl", "text"}) {
    CAPTURE(tag);
    const std::string name = tag;
    CHECK(count(page, "<" + name + ">") + count(page, "<" + name + " ") == count(page, "</" + name + ">"));
  }
}

TEST_CASE("render_report: text from outside cannot become markup or a placeholder") {
  const std::string page = render_report(small_report(0));
  CHECK(page.find("digits &lt;drawn&gt; &amp; &quot;tested&quot;") != std::string::npos);
  CHECK(page.find("<dd>a&lt;b&gt;&amp;{{count}}</dd>") != std::string::npos);
  CHECK(count(page, "{{") == 1);
}

TEST_CASE("render_report: the worst mistakes come first, and nothing breaks without any") {
  const std::string page = render_report(small_report(4));
  const size_t section = page.find("The worst mistakes");
  const size_t third = page.find("no. 3<", section), zeroth = page.find("no. 0<", section);
  CHECK(third < zeroth);
  CHECK(page.find("53.0%", section) < third);
  CHECK(render_report(small_report(0)).find("There are none.") != std::string::npos);
}

TEST_CASE("render_report: a net that diverged still gets its page") {
  MnistReport report = small_report(3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  report.confidence.assign(report.confidence.size(), nan);
  report.train_loss = {{0, nan}, {1, std::numeric_limits<double>::infinity()}};
  report.test_loss.clear();
  report.pixels.assign(report.pixels.size(), 0);  // base64 of real images may spell anything
  const std::string page = render_report(report);
  CHECK(page.find("nan") == std::string::npos);
  CHECK(page.find("inf") == std::string::npos);
  CHECK(page.find("no data") != std::string::npos);
}

TEST_CASE("render_report: vectors that disagree are a ValueError") {
  CHECK_THROWS_AS(render_report({}), rush::ValueError);
  MnistReport report = small_report(0);
  report.confidence.pop_back();
  CHECK_THROWS_WITH_AS(render_report(report), doctest::Contains("40 labels, but 40 predictions, 39 confidences"),
                       rush::ValueError);
  report = small_report(0);
  report.predicted[5] = 10;
  CHECK_THROWS_WITH_AS(render_report(report), "render_report: 10 is no digit", rush::ValueError);
}

TEST_CASE("smoothed: the mean of the neighbours, without what is not finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ChartPoint> out = smoothed({{0, 1}, {1, 2}, {2, nan}, {3, 6}}, 1);
  REQUIRE(out.size() == 4);
  CHECK(out[0].y == doctest::Approx(1.5));
  CHECK(out[1].y == doctest::Approx(1.5));
  CHECK(out[2].y == doctest::Approx(4));
  CHECK(out[3].y == doctest::Approx(6));
  CHECK(out[3].x == 3);
  CHECK(smoothed({}, 5).empty());
  CHECK(smoothed({{0, 3}}, 5).at(0).y == 3);
}

TEST_CASE("svg_chart: degenerate data") {
  Chart chart;
  for (const std::vector<ChartPoint>& points :
       {std::vector<ChartPoint>{{0, 0}}, {{1, 1e-30}, {2, 1e30}}, {{5, -3}, {5, -3}}}) {
    for (Chart::Scale scale : {Chart::Scale::Linear, Chart::Scale::Log}) {
      chart.y_scale = scale;
      chart.series = {{"a", "red", ChartSeries::Style::Line, points}, {"b", "red", ChartSeries::Style::Dots, points}};
      const std::string svg = svg_chart(chart);
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
      CHECK(svg.size() < 20000);
    }
  }
}
