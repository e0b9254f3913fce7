#include "examples/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/error/error.h"
#include "examples/stdout_check.h"

namespace examples {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // which Clang 16 does not deduce by itself

std::string with_underscores(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

// The whole of `text` as a number, or false.
template <class T>
bool to_number(const std::string& text, T* value) {
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc{} && stop == end;
}

// "of at least 1", "from 0 to 1" or "": what to add to "expected a number".
template <class T>
std::string range_text(T min, T max) {
  const bool low = min != std::numeric_limits<T>::lowest(), high = max != std::numeric_limits<T>::max();
  if (low && high) return rush::str(" from ", min, " to ", max);
  if (low) return rush::str(" of at least ", min);
  return high ? rush::str(" of at most ", max) : "";
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Levenshtein's distance: insertions, deletions and substitutions from one word to the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Options::Options(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {}

void Options::add_option(std::string_view name, std::string help, std::string default_text,
                         std::variant<WholeNumber, Number, Text, Flag> target) {
  RUSH_CHECK_VALUE(name.starts_with("--"), "Options::add: '", name, "' does not begin with --");
  options_.push_back({std::string(name), std::move(help), std::move(default_text), std::move(target), {}});
}

void Options::add_alias(std::string alias, std::string_view name) {
  const auto option = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  RUSH_CHECK_VALUE(option != options_.end(), "Options::add_alias: there is no option ", name);
  option->aliases.push_back(std::move(alias));
}

void Options::add(std::string_view name, int64_t* value, std::string help, int64_t min, int64_t max) {
  add_option(name, std::move(help), rush::str(*value), WholeNumber{value, min, max});
}

void Options::add(std::string_view name, double* value, std::string help, double min, double max) {
  add_option(name, std::move(help), rush::str(*value), Number{value, min, max});
}

void Options::add(std::string_view name, std::string* value, std::string help, std::vector<std::string> choices) {
  if (!choices.empty()) help += ": " + join(choices);
  add_option(name, std::move(help), *value, Text{value, std::move(choices)});
}

void Options::add(std::string_view name, bool* value, std::string help) {
  add_option(name, std::move(help), *value ? "true" : "false", Flag{value});
}

void Options::add_argument(std::string name, std::string* value, std::string help) {
  arguments_.push_back({std::move(name), std::move(help), value});
}

const Options::Option& Options::find(const std::string& name) const {
  const std::string wanted = with_underscores(name);
  size_t best_distance = std::numeric_limits<size_t>::max();
  const Option* best = nullptr;
  for (const Option& option : options_) {
    for (const std::string& alias : option.aliases) {
      if (wanted == with_underscores(alias)) return option;
    }
    const size_t distance = edit_distance(wanted, with_underscores(option.name));
    if (distance == 0) return option;
    if (distance < best_distance) best_distance = distance, best = &option;
  }
  const bool close = best && best_distance <= std::max<size_t>(1, (wanted.size() - 2) / 3);
  throw rush::ValueError(
      rush::str("unknown option ", name, close ? rush::str(" (did you mean ", best->name, "?)") : std::string()));
}

void Options::assign(const Option& option, const std::string& text) {
  auto refuse = [&](const std::string& expected) {
    throw rush::ValueError(rush::str(option.name, ": expected ", expected, ", got '", text, "'"));
  };
  std::visit(Overloaded{
                 [&](const WholeNumber& target) {
                   int64_t value = 0;
                   const bool good = to_number(text, &value) && target.min <= value && value <= target.max;
                   if (!good) refuse("a whole number" + range_text(target.min, target.max));
                   *target.value = value;
                 },
                 [&](const Number& target) {
                   double value = 0;
                   const bool good =
                       to_number(text, &value) && std::isfinite(value) && target.min <= value && value <= target.max;
                   if (!good) refuse("a number" + range_text(target.min, target.max));
                   *target.value = value;
                 },
                 [&](const Text& target) {
                   const bool good =
                       target.choices.empty() || std::count(target.choices.begin(), target.choices.end(), text);
                   if (!good) refuse("one of " + join(target.choices));
                   *target.value = text;
                 },
                 [&](const Flag& target) {
                   const bool on = text == "true" || text == "True" || text == "1";
                   const bool off = text == "false" || text == "False" || text == "0";
                   if (!on && !off) refuse("true or false");
                   *target.value = on;
                 },
             },
             option.target);
}

void Options::parse(const std::vector<std::string>& arguments) {
  size_t unnamed = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") && unnamed < arguments_.size()) {
      *arguments_[unnamed++].value = argument;
      continue;
    }
    RUSH_CHECK_VALUE(argument.starts_with("--") && argument.size() > 2, "unexpected argument '", argument, "'");
    const size_t equals = argument.find('=');
    const Option& option = find(argument.substr(0, equals));
    if (equals != std::string::npos) {
      assign(option, argument.substr(equals + 1));
    } else if (std::holds_alternative<Flag>(option.target)) {
      assign(option, "true");
    } else {
      const bool has_value = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
      RUSH_CHECK_VALUE(has_value, option.name, ": its value is missing");
      assign(option, arguments[++i]);
    }
  }
  RUSH_CHECK_VALUE(unnamed == arguments_.size(), arguments_[unnamed].name, " is missing");
}

void Options::parse_or_exit(int argc, char** argv, const std::function<void()>& check) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::fputs(help().c_str(), stdout);
      const std::string problem = stdout_problem();
      if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", program_.c_str(), problem.c_str());
      std::exit(problem.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
    }
  }
  try {
    parse(arguments);
    if (check) check();
  } catch (const rush::ValueError& error) {
    constexpr int kBadUsage = 2;
    std::fprintf(stderr, "%s: %s; --help lists the options\n", program_.c_str(), error.msg().c_str());
    std::exit(kBadUsage);
  }
}

std::string Options::help() const {
  size_t width = 0;
  for (const Option& option : options_) width = std::max(width, option.name.size());
  for (const Argument& argument : arguments_) width = std::max(width, argument.name.size());
  const auto line = [&](const std::string& name, const std::string& text) {
    return "  " + name + std::string(width - name.size() + 2, ' ') + text + "\n";
  };
  std::string out = summary_ + "\n";
  if (!arguments_.empty()) out += "\nArguments:\n";
  for (const Argument& argument : arguments_) out += line(argument.name, argument.help);
  out += "\nOptions:\n";
  for (const Option& option : options_) {
    std::string notes;
    const auto note = [&](const std::string& text) { notes += (notes.empty() ? " (" : "; ") + text; };
    if (!option.default_text.empty()) note("default " + option.default_text);
    if (!option.aliases.empty()) note("also " + join(option.aliases));
    out += line(option.name, option.help + notes + (notes.empty() ? "" : ")"));
  }
  return out;
}

}  // namespace examples
