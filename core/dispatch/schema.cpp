#include "core/dispatch/schema.h"

#include <algorithm>
#include <charconv>

#include "core/error/error_context.h"

namespace rush {

namespace {

// The text up to `stop` outside brackets and quotes; what follows `stop` stays in `rest`.
std::string_view take_until(std::string_view& rest, char stop) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (depth == 0 && c == stop) {
      const std::string_view taken = rest.substr(0, i);
      rest.remove_prefix(i + 1);
      return taken;
    }
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
  }
  return std::exchange(rest, {});
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "Tensor(a!)" -> "Tensor", "SymInt[2]" -> "int[2]".
std::string plain_type(std::string_view text) {
  std::string type;
  int depth = 0;
  for (char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) type += c;
    if (c == ')') --depth;
  }
  if (type.starts_with("SymInt")) type.replace(0, 6, "int");
  return type;
}

// "Tensor(a!)" -> "a".
std::string alias_in(std::string_view type) {
  const size_t open = type.find('(');
  if (open == type.npos) return "";
  const std::string_view set = type.substr(open + 1);
  return std::string(set.substr(0, set.find_first_of("! )")));
}

template <class T>
T parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && (end == text.data() + text.size() || *end == '.');
  RUSH_CHECK_VALUE(whole, "schema: bad number '", text, "'");
  return value;
}

bool is_list_of(const std::string& type, std::string_view element) {
  return type.starts_with(element) && type.size() > element.size() && type[element.size()] == '[';
}

Value parse_default(const std::string& type, std::string_view text) {
  if (text == "None") return {};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text.front() == '"') return std::string(text.substr(1, text.size() - 2));
  // PyTorch's schemas give the numbers of memory formats and dtypes, of which one of each occurs.
  if (type.starts_with("MemoryFormat")) {
    RUSH_CHECK_VALUE(text == "0" || text == "contiguous_format", "schema: unknown memory format ", text);
    return MemoryFormat::Contiguous;
  }
  if (text == "Mean") return int64_t{1};
  if (type.starts_with("ScalarType")) {
    RUSH_CHECK_VALUE(text == "4" || text == "long", "schema: unknown dtype default ", text);
    return kInt64;
  }
  if (text.front() == '[') {
    std::vector<int64_t> ints;
    std::vector<double> floats;
    text = text.substr(1, text.size() - 2);
    while (!trim(text).empty()) {
      const std::string_view element = trim(take_until(text, ','));
      if (is_list_of(type, "float")) {
        floats.push_back(parse_number<double>(element));
      } else {
        ints.push_back(parse_number<int64_t>(element));
      }
    }
    return is_list_of(type, "float") ? Value(floats) : Value(ints);
  }
  const bool real = text.find_first_of(".e") != text.npos || type.starts_with("float");
  return real ? Value(parse_number<double>(text)) : Value(parse_number<int64_t>(text));
}

// Length N of a type "T[N]"; 0 for any length or no list.
size_t fixed_length(const std::string& type) {
  const size_t open = type.find('[');
  if (open == type.npos || type[open + 1] == ']') return 0;
  return parse_number<size_t>(std::string_view(type).substr(open + 1, type.find(']') - open - 1));
}

// Fits what was given to what the type wants, where that loses nothing.
Value fit(const Argument& argument, Value value) {
  const std::string& type = argument.type;
  if (value.is_none()) return value;
  if (is_list_of(type, "int")) {
    if (value.is<int64_t>()) {
      const size_t n = fixed_length(type);
      return std::vector<int64_t>(n ? n : 1, value.as<int64_t>());
    }
    // One number for every dimension, given as a list.
    const size_t n = fixed_length(type);
    if (n > 1 && value.is<std::vector<int64_t>>() && value.as<std::vector<int64_t>>().size() == 1) {
      return std::vector<int64_t>(n, value.as<std::vector<int64_t>>()[0]);
    }
    // An empty list in a by-name call has no element type.
    if (value.is<std::vector<Tensor>>() && value.as<std::vector<Tensor>>().empty()) return std::vector<int64_t>();
    return value;
  }
  if (is_list_of(type, "float")) {
    if (value.is<std::vector<int64_t>>()) {
      const auto& ints = value.as<std::vector<int64_t>>();
      return std::vector<double>(ints.begin(), ints.end());
    }
    return value;
  }
  if (type == "Tensor" || type == "Tensor?") {
    if (value.is<bool>()) return detail::wrapped_number(value.as<bool>());
    if (value.is<int64_t>()) return detail::wrapped_number(value.as<int64_t>());
    if (value.is<double>()) return detail::wrapped_number(value.as<double>());
    if (value.is<complex<double>>()) return detail::wrapped_number(value.as<complex<double>>());
    return value;
  }
  if (type.starts_with("float") && value.is<int64_t>()) return static_cast<double>(value.as<int64_t>());
  if (type.starts_with("float") && value.is<bool>()) return static_cast<double>(value.as<bool>());
  if (type == "Tensor?[]" && value.is<std::vector<Tensor>>()) {
    const auto& tensors = value.as<std::vector<Tensor>>();
    std::vector<std::optional<Tensor>> optional;
    for (const Tensor& t : tensors) optional.push_back(t.defined() ? std::optional(t) : std::nullopt);
    return optional;
  }
  if (type.starts_with("Device") && value.is<std::string>()) return Device(value.as<std::string>());
  return value;
}

Argument parse_argument(std::string_view text) {
  Argument argument;
  const size_t equals = text.find('=');
  const std::string_view head = trim(text.substr(0, equals));
  const size_t space = head.rfind(' ');
  RUSH_CHECK_VALUE(space != head.npos, "schema: argument '", text, "' has no name");
  argument.type = plain_type(head.substr(0, space));
  argument.alias = alias_in(head.substr(0, space));
  argument.is_written = head.substr(0, space).find("!)") != std::string_view::npos;
  argument.name = head.substr(space + 1);
  if (equals != text.npos) {
    const std::string_view value = trim(text.substr(equals + 1));
    RUSH_CHECK_VALUE(!value.empty(), "schema: argument '", argument.name, "' has no default behind '='");
    argument.default_value = fit(argument, parse_default(argument.type, value));
  }
  return argument;
}

std::string in_schema(const void* text) { return str("in ", *static_cast<const std::string_view*>(text)); }

Value fit_checked(const Argument& argument, Value given, const std::string& op) {
  Value value = fit(argument, std::move(given));
  RUSH_CHECK_TYPE(argument.takes(value), op, ": argument '", argument.name, "' is ", argument.type, ", got ",
                  value.kind());
  return value;
}

}  // namespace

std::string Argument::kind() const {
  std::string kind = type;
  if (optional()) kind.pop_back();
  const size_t open = kind.rfind('[');
  return open == kind.npos ? kind : kind.substr(0, open) + "[]";
}

bool Argument::takes(const Value& value) const {
  if (value.is_none()) return optional() || type == "Tensor";
  const std::string expected = kind();
  if (expected != "Scalar") return expected == value.kind();
  return value.is<bool>() || value.is<int64_t>() || value.is<double>() || value.is<complex<double>>();
}

Schema Schema::parse(std::string_view text) {
  const ErrorContext context(in_schema, &text);
  Schema schema;
  std::string_view rest = text;
  const size_t open = rest.find('(');
  const size_t arrow = rest.rfind(") -> ");
  RUSH_CHECK_VALUE(open != rest.npos && arrow != rest.npos && open < arrow,
                   "schema: expected 'name(...) -> ...', got '", text, "'");
  schema.name = rest.substr(0, open);
  std::string_view list = rest.substr(open + 1, arrow - open - 1);
  std::string_view returns = rest.substr(arrow + 5);
  bool keyword_only = false;
  while (!trim(list).empty()) {
    const std::string_view one = trim(take_until(list, ','));
    if (one == "*") {
      keyword_only = true;
      continue;
    }
    schema.arguments.push_back(parse_argument(one));
    schema.arguments.back().keyword_only = keyword_only;
  }
  if (returns.starts_with('(')) returns = returns.substr(1, returns.size() - 2);
  while (!trim(returns).empty()) {
    const std::string_view one = trim(take_until(returns, ','));
    const std::string type = plain_type(one);
    schema.return_types.push_back(type.substr(0, type.find(' ')));
    schema.return_aliases.push_back(alias_in(one));
  }
  schema.num_returns = static_cast<int>(schema.return_aliases.size());
  return schema;
}

std::vector<Value> Schema::bind(std::vector<Value> positional, std::vector<std::pair<std::string, Value>> named) const {
  RUSH_CHECK_TYPE(positional.size() <= arguments.size(), name, ": takes at most ", arguments.size(), " arguments, got ",
                  positional.size());
  for (const auto& given : named) {
    const std::string& key = given.first;
    const bool known =
        std::any_of(arguments.begin(), arguments.end(), [&](const Argument& a) { return a.name == key; });
    RUSH_CHECK_TYPE(known, name, ": has no argument named '", key, "'");
  }
  std::vector<Value> stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    const auto by_name =
        std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == argument.name; });
    if (i < positional.size()) {
      RUSH_CHECK_TYPE(by_name == named.end(), name, ": argument '", argument.name, "' is given twice");
      stack.push_back(fit_checked(argument, std::move(positional[i]), name));
    } else if (by_name != named.end()) {
      stack.push_back(fit_checked(argument, std::move(by_name->second), name));
    } else {
      RUSH_CHECK_TYPE(argument.default_value || argument.optional(), name, ": argument '", argument.name,
                      "' is missing");
      stack.push_back(argument.default_value.value_or(Value()));
    }
  }
  return stack;
}

std::string_view short_name(std::string_view name) {
  constexpr std::string_view kAten = "aten::";
  if (name.starts_with(kAten)) name.remove_prefix(kAten.size());
  return name.substr(0, name.find('.'));
}

}  // namespace rush
