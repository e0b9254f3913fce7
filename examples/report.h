// The page that a program leaves behind: one HTML file that needs nothing else.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/svg_chart.h"

namespace examples {

using Facts = std::vector<std::pair<std::string, std::string>>;

struct Report {
  /// What the run made: a heading, a line of text, and HTML, which is not escaped.
  struct Section {
    std::string heading, text, html;
  };

  std::string program;   // "demo"
  std::string headline;  // "98.7%", with what it says of the run: "of 10000 test digits are read correctly"
  std::string summary;
  Facts facts;  // shown as tiles: ("training time", "41 s")
  std::vector<Chart> charts;
  std::vector<Section> sections;
  Facts settings, machine;
};

/// The report as an HTML page: the headline, the facts, the curves, the sections, then settings and machine. Light or
/// dark as the reader's browser is.
std::string render_report(const Report& report);

/// The HTML of a section: text as it is, with its line breaks.
std::string text_html(const std::string& text);
/// The same of a picture: the bytes of a file of this type, "image/png".
std::string picture_html(const std::string& mime_type, const std::string& bytes, const std::string& description);

/// A file as a `data:` URI, for the `src` of an HTML image: data_uri("image/png", png).
std::string data_uri(std::string_view mime_type, std::string_view bytes);

/// 0.987 -> "98.7%"
std::string percent(double share, int digits);

}  // namespace examples
