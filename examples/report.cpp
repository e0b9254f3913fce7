#include "examples/report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "core/error/error.h"
#include "examples/report_page.h"
#include "examples/utf8.h"

namespace examples {
namespace {

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

// Each fact as a <div>, for a <dl>.
std::string items(const Facts& facts, const char* css_class) {
  std::string out;
  for (const auto& [name, value] : facts) {
    out += rush::str("<div", css_class, "><dt>", escape_html(name), "</dt><dd>", escape_html(value), "</dd></div>\n");
  }
  return out;
}

std::string chart_cards(const std::vector<Chart>& charts) {
  std::string out;
  for (const Chart& chart : charts) out += "<div class=\"card\">\n" + svg_chart(chart) + "</div>\n";
  return out;
}

std::string section_texts(const std::vector<Report::Section>& sections) {
  std::string out;
  for (const Report::Section& section : sections) {
    out += "\n<h2>" + escape_html(section.heading) + "</h2>\n";
    if (!section.text.empty()) out += "<p>" + escape_html(section.text) + "</p>\n";
    out += section.html;
  }
  return out;
}

}  // namespace

std::string percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f%%", digits, 100 * share);
  return text;
}

std::string text_html(const std::string& text) { return "<pre class=\"card\">" + escape_html(text) + "</pre>\n"; }

std::string data_uri(std::string_view mime_type, std::string_view bytes) {
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "data:" + std::string(mime_type) + ";base64,";
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;  // 24 bits: four characters of six
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += alphabet[group >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  out.replace(out.size() - padding, padding, padding, '=');
  return out;
}

std::string picture_html(const std::string& mime_type, const std::string& bytes, const std::string& description) {
  return rush::str("<img class=\"picture\" alt=\"", escape_html(description), "\" src=\"", data_uri(mime_type, bytes),
                   "\">\n");
}

std::string render_report(const Report& report) {
  return valid_utf8(fill(kReportPage, {{"program", escape_html(report.program)},
                                       {"headline", escape_html(report.headline)},
                                       {"summary", escape_html(report.summary)},
                                       {"facts", items(report.facts, " class=\"card\"")},
                                       {"charts", chart_cards(report.charts)},
                                       {"sections", section_texts(report.sections)},
                                       {"settings", items(report.settings, "")},
                                       {"machine", items(report.machine, "")}}));
}

}  // namespace examples
