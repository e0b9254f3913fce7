#include "core/library/aliases.h"

#include <algorithm>

namespace rush::library {

namespace {

// The parts of a list that commas separate, outside brackets and quotes.
std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(list.substr(begin));
  return parts;
}

// "a!" of "Tensor(a!) self".
Alias annotation(std::string_view part) {
  const size_t open = part.find('('), equals = part.find('=');
  if (open == part.npos || open > equals) return {};
  const std::string_view text = part.substr(open + 1, part.find(')', open) - open - 1);
  const size_t end = text.find_first_of("! ");
  return {std::string(text.substr(0, end)), text.find('!') != text.npos};
}

std::vector<Alias> annotations(std::string_view list) {
  std::vector<Alias> all;
  for (std::string_view part : split(list)) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin != part.npos && part.substr(begin) != "*") all.push_back(annotation(part));
  }
  return all;
}

}  // namespace

Aliases Aliases::parse(std::string_view schema) {
  const size_t open = schema.find('('), arrow = schema.rfind("->");
  const size_t close = schema.rfind(')', arrow);
  std::string_view results = schema.substr(arrow + 2);
  results.remove_prefix(std::min(results.find_first_not_of(' '), results.size()));
  if (results.starts_with('(')) results = results.substr(1, results.rfind(')') - 1);
  return {annotations(schema.substr(open + 1, close - open - 1)), annotations(results)};
}

}  // namespace rush::library
