#include "examples/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/error/error.h"
#include "examples/mnist/digit_sections.h"
#include "examples/mnist/synthetic_digits.h"
#include "tests/text.h"

using namespace examples;
using rush::testing::count;

namespace {

// Forty digits; `wrong` of them are misread, the last with the highest confidence.
ReadDigits small_set(size_t wrong) {
  constexpr size_t count = 40;
  Digits digits = draw_digits(count, 1);
  ReadDigits read;
  read.pixels = digits.pixels;
  read.labels = read.predicted = digits.labels;
  read.confidence.assign(count, .9f);
  for (size_t i = 0; i < wrong; ++i) {
    read.predicted[i] = (read.labels[i] + 1) % 10;
    read.confidence[i] = .5f + .01f * static_cast<float>(i);
  }
  return read;
}

Report small_report(size_t wrong) {
  Report report;
  report.program = "demo";
  report.headline = percent(.9, 2);
  report.summary = "digits <drawn> & \"tested\"";
  report.facts = {{"folder", "a<b>&{{summary}}"}};
  Chart chart;
  chart.series = {{"train", "var(--first)", ChartSeries::Style::Line, {{0, 2.3}, {1, 0.1}, {2, 0.03}}}};
  report.charts = {chart, chart};
  report.sections = digit_sections(small_set(wrong));
  report.sections.push_back({"<text>", "", text_html("a < b\n{{facts}} \xff\xc3\xa9")});
  report.settings = {{"seed", "<1>"}};
  report.machine = {{"threads", "2"}};
  return report;
}

}  // namespace

TEST_CASE("render_report: one page that needs nothing else") {
  std::string page = render_report(small_report(4));
  CHECK(page.starts_with("<!DOCTYPE html>"));
  // Base64 may hold "//", so images are left out of the search.
  for (size_t at = page.find("src=\""); at != std::string::npos; at = page.find("src=\"", at + 1)) {
    CHECK(page.compare(at + 5, 22, "data:image/png;base64,") == 0);
    page.erase(at + 5, page.find('"', at + 5) - at - 5);
  }
  for (const char* outside : {"http:", "https:", "//", "<script", "<link", "@import"}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
  CHECK(page.find("<h1>90.00%</h1>") != std::string::npos);
  CHECK(count(page, "<svg class=\"chart\"") == 2);
  CHECK(count(page, "<figure") == 40 + 4);
  CHECK(count(page, "<figure class=\"wrong\">") == 4);
  for (const char* tag : {"div", "figure", "figcaption", "svg", "table", "tr", "td", "th", "p", "dl", "text", "pre"}) {
    CAPTURE(tag);
    const std::string name = tag;
    CHECK(count(page, "<" + name + ">") + count(page, "<" + name + " ") == count(page, "</" + name + ">"));
  }
}

TEST_CASE("render_report: text from outside cannot become markup or a placeholder") {
  const std::string page = render_report(small_report(0));
  CHECK(page.find("digits &lt;drawn&gt; &amp; &quot;tested&quot;") != std::string::npos);
  CHECK(page.find("<dd>a&lt;b&gt;&amp;{{summary}}</dd>") != std::string::npos);
  CHECK(page.find("<h2>&lt;text&gt;</h2>") != std::string::npos);
  CHECK(page.find("a &lt; b\n{{facts}} \xef\xbf\xbd\xc3\xa9</pre>") != std::string::npos);
  CHECK(page.find("<dd>&lt;1&gt;</dd>") != std::string::npos);
  CHECK(count(page, "{{") == 2);
}

TEST_CASE("digit_sections: the worst mistakes come first, and nothing breaks without any") {
  const Report::Section worst = digit_sections(small_set(4)).at(1);
  CHECK(worst.heading == "The worst mistakes");
  CHECK(worst.html.find("no. 3<") < worst.html.find("no. 0<"));
  CHECK(worst.html.find("53.0%") < worst.html.find("no. 3<"));
  CHECK(digit_sections(small_set(0)).at(1).text == "There are none.");
  ReadDigits diverged = small_set(3);
  diverged.confidence.assign(diverged.confidence.size(), std::numeric_limits<float>::quiet_NaN());
  CHECK(digit_sections(diverged).at(1).html.find("nan%") == std::string::npos);
}

TEST_CASE("digit_sections: vectors that disagree are a ValueError") {
  CHECK_THROWS_AS(digit_sections({}), rush::ValueError);
  ReadDigits digits = small_set(0);
  digits.confidence.pop_back();
  CHECK_THROWS_WITH_AS(digit_sections(digits), doctest::Contains("40 labels, but 40 predictions, 39 confidences"),
                       rush::ValueError);
  digits = small_set(0);
  digits.predicted[5] = 10;
  CHECK_THROWS_WITH_AS(digit_sections(digits), "digit_sections: 10 is no digit", rush::ValueError);
}

TEST_CASE("data_uri: base64 of the file (RFC 4648, section 10)") {
  const char* const kCoded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t size = 0; size < 7; ++size) {
    CHECK(data_uri("text/plain", std::string("foobar").substr(0, size)) ==
          std::string("data:text/plain;base64,") + kCoded[size]);
  }
  CHECK(data_uri("image/png", "\x89PNG\xff").ends_with(",iVBOR/8="));
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
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const std::vector<ChartPoint>& points : {std::vector<ChartPoint>{{0, nan}, {1, inf}},
                                                {{0, 1}, {1, nan}, {2, 3}},
                                                {{0, 0}},
                                                {{1, 1e-30}, {2, 1e30}},
                                                {{5, -3}, {5, -3}}}) {
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
