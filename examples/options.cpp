#include "examples/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error/error.h"
#include "examples/stdout_check.h"

namespace examples {
namespace {

// "  --name  what it does (from 1 to 100; default 4; also --other)"
class HelpLines : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return option->get_name(is_positional);
  }
  std::string make_option_opts(const CLI::Option* /*option*/) const override { return ""; }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string notes;
    const auto note = [&](const char* word, const std::string& text) {
      if (!text.empty()) notes += (notes.empty() ? " (" : "; ") + (word + text);
    };
    note("", option->get_type_name());
    note("default ", option->get_default_str());
    const std::vector<std::string>& names = option->get_lnames();
    for (size_t i = 1; i < names.size(); ++i) note("also --", names[i]);
    return option->get_description() + notes + (notes.empty() ? "" : ")");
  }
};

// "at least 1", "from 0 to 1" or "".
template <class T>
std::string range_text(T min, T max) {
  const bool low = min != std::numeric_limits<T>::lowest(), high = max != std::numeric_limits<T>::max();
  if (low && high) return rush::str("from ", min, " to ", max);
  if (low) return rush::str("at least ", min);
  return high ? rush::str("at most ", max) : "";
}

[[noreturn]] void refuse(const std::string& names, const std::string& expected, const std::string& text) {
  throw CLI::ValidationError(names.substr(0, names.find(',')), "expected " + expected + ", got '" + text + "'");
}

// `set` is given the last value.
CLI::Option* add_option(CLI::App& app, const std::string& names, std::string help, const std::string& default_text,
                        std::function<void(const std::string&)> set) {
  const auto use = [names, set = std::move(set)](const CLI::results_t& given) {
    set(given.back());
    return true;
  };
  return app.add_option(names, use, std::move(help))->take_last()->default_str(default_text)->type_name("");
}

// CLI11's own conversion reads 010 as 8, and takes NaN and infinity.
template <class T>
void add_number(CLI::App& app, const std::string& names, T* value, std::string help, T min, T max) {
  const std::string range = range_text(min, max);
  const auto set = [=](const std::string& text) {
    T number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool is_number = error == std::errc{} && stop == end && std::isfinite(static_cast<double>(number));
    if (!is_number || number < min || number > max) {
      const std::string kind = std::is_integral_v<T> ? "a whole number" : "a number";
      refuse(names, kind + (range.starts_with("at") ? " of " : range.empty() ? "" : " ") + range, text);
    }
    *value = number;
  };
  add_option(app, names, std::move(help), rush::str(*value), set)->type_name(range);
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

// " (did you mean --name?)", if an option is close to what was given.
std::string suggestion(const CLI::App& app, const std::string& given) {
  size_t best_distance = std::max<size_t>(1, (given.size() - 2) / 3) + 1;
  std::string best;
  for (const CLI::Option* option : app.get_options()) {
    const size_t distance = edit_distance(given, option->get_name());
    if (distance < best_distance) best_distance = distance, best = option->get_name();
  }
  return best.empty() ? "" : " (did you mean " + best + "?)";
}

// As CLI11 reads them: names with underscores, and an empty value apart from its name. A value that is missing is not
// taken from the next option, as CLI11 would.
std::vector<std::string> prepared(const CLI::App& app, const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const size_t equals = given[i].find('=');
    std::string name = given[i].substr(0, equals);
    if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
    const CLI::Option* option = name.starts_with("--") ? app.get_option_no_throw(name) : nullptr;
    if (equals != std::string::npos && equals + 1 < given[i].size()) {
      out.push_back(name + given[i].substr(equals));
      continue;
    }
    out.push_back(name);
    if (equals != std::string::npos) {
      out.emplace_back();
    } else if (option && option->get_items_expected_max() > 0) {
      RUSH_CHECK_VALUE(i + 1 < given.size() && !given[i + 1].starts_with("--"), option->get_name(),
                       ": its value is missing");
      out.push_back(given[++i]);
    }
  }
  return out;
}

}  // namespace

Options::Options(std::string program, std::string summary)
    : app_(std::make_unique<CLI::App>(std::move(summary), std::move(program))) {
  app_->formatter(std::make_shared<HelpLines>());
  app_->allow_extras();  // parse() has better words for them
}

Options::~Options() = default;

void Options::add(const std::string& names, int64_t* value, std::string help, int64_t min, int64_t max) {
  add_number(*app_, names, value, std::move(help), min, max);
}

void Options::add(const std::string& names, double* value, std::string help, double min, double max) {
  add_number(*app_, names, value, std::move(help), min, max);
}

void Options::add(const std::string& names, std::string* value, std::string help, std::vector<std::string> choices) {
  const std::string list = CLI::detail::join(choices, ", ");
  if (!choices.empty()) help += ": " + list;
  add_option(*app_, names, std::move(help), *value, [=](const std::string& text) {
    if (!choices.empty() && !std::count(choices.begin(), choices.end(), text)) refuse(names, "one of " + list, text);
    *value = text;
  });
}

void Options::add(const std::string& names, bool* value, std::string help) {
  const auto is_truth_value = [](const std::string& text) {
    const bool on = text == "true" || text == "True" || text == "1";
    const bool off = text == "false" || text == "False" || text == "0";
    return on || off ? "" : "expected true or false, got '" + text + "'";
  };
  app_->add_flag(names, *value, std::move(help))->check(is_truth_value)->default_str(*value ? "true" : "false");
}

void Options::add_argument(const std::string& name, std::string* value, std::string help) {
  add_option(*app_, name, std::move(help), "", [=](const std::string& text) { *value = text; })->required();
}

void Options::parse(std::vector<std::string> arguments) {
  arguments = prepared(*app_, arguments);
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app_->parse(arguments);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ParseError& error) {
    throw rush::ValueError(error.what());
  }
  for (const std::string& extra : app_->remaining()) {
    RUSH_CHECK_VALUE(extra.starts_with("--") && extra.size() > 2, "unexpected argument '", extra, "'");
    const std::string name = extra.substr(0, extra.find('='));
    throw rush::ValueError("unknown option " + name + suggestion(*app_, name));
  }
}

void Options::parse_or_exit(int argc, char** argv, const std::function<void()>& check) {
  const char* program = app_->get_name().c_str();
  try {
    parse({argv + std::min(argc, 1), argv + argc});
    if (check) check();
  } catch (const CLI::CallForHelp&) {
    std::fputs(help().c_str(), stdout);
    const std::string problem = stdout_problem();
    if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", program, problem.c_str());
    std::exit(problem.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
  } catch (const rush::ValueError& error) {
    constexpr int kBadUsage = 2;
    std::fprintf(stderr, "%s: %s; --help lists the options\n", program, error.msg().c_str());
    std::exit(kBadUsage);
  }
}

std::vector<std::pair<std::string, std::string>> Options::values() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const CLI::Option* option : app_->get_options()) {
    if (option == app_->get_help_ptr()) continue;
    std::string value = option->empty() ? option->get_default_str() : option->results().back();
    if (!value.empty()) out.emplace_back(option->get_single_name(), std::move(value));
  }
  return out;
}

std::string Options::help() const {
  size_t width = 0;
  for (const CLI::Option* option : app_->get_options()) width = std::max(width, option->get_name().size());
  app_->get_formatter()->column_width(width + 4);
  return app_->help();
}

}  // namespace examples
