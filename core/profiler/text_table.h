// Tables as PyTorch's profiler prints them.
#pragma once
#include <string>
#include <vector>

namespace rush::profiler {

// `number` in printf's `format`.
std::string printed(const char* format, double number);
// "1.500ms", of microseconds.
std::string as_time(double microseconds);
// Ends with "..." where it is longer than `width`, which is taken for 3 at least.
std::string shortened(std::string text, size_t width);

using Row = std::vector<std::string>;
// Columns as wide as their widest cell. The first row has their names, which stand between two lines.
std::string set_in_columns(const std::vector<Row>& rows);

}  // namespace rush::profiler
