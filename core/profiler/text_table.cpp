#include "core/profiler/text_table.h"

#include <algorithm>
#include <cstdio>

namespace rush::profiler {

std::string printed(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

std::string as_time(double microseconds) {
  if (microseconds >= 1e6) return printed("%.3fs", microseconds / 1e6);
  if (microseconds >= 1e3) return printed("%.3fms", microseconds / 1e3);
  return printed("%.3fus", microseconds);
}

std::string shortened(std::string text, size_t width) {
  width = std::max<size_t>(width, 3);
  if (text.size() > width) text = text.substr(0, width - 3) + "...";
  return text;
}

std::string set_in_columns(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string line, text;
  for (const size_t width : widths) line += std::string(width, '-') + "  ";
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r < 2) text += line + "\n";
    for (size_t i = 0; i < rows[r].size(); ++i)
      text += std::string(widths[i] - rows[r][i].size(), ' ') + rows[r][i] + "  ";
    text += "\n";
  }
  return text + line + "\n";
}

}  // namespace rush::profiler
