// Command-line options of the programs: `--name value` or `--name=value`, and `--help`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace examples {

/// The options of one program. Each is bound to a variable, whose value at that time is the default.
/// Dashes and underscores inside a name are the same: `--batch-size` is `--batch_size`.
class Options {
 public:
  /// `program` begins error messages; `summary` is the first line of the help.
  Options(std::string program, std::string summary);

  /// Adds an option; `name` begins with "--". A value outside [min, max] or not among `choices` (if there are any) is
  /// refused. A bool may stand alone: `--flag` is `--flag=true`.
  void add(std::string_view name, int64_t* value, std::string help,
           int64_t min = std::numeric_limits<int64_t>::lowest(), int64_t max = std::numeric_limits<int64_t>::max());
  void add(std::string_view name, double* value, std::string help, double min = std::numeric_limits<double>::lowest(),
           double max = std::numeric_limits<double>::max());
  void add(std::string_view name, std::string* value, std::string help, std::vector<std::string> choices = {});
  void add(std::string_view name, bool* value, std::string help);

  /// Another name of the option `name`, that it had before or has elsewhere.
  void add_alias(std::string alias, std::string_view name);

  /// Adds an argument without a name, which must be given; `name` stands for it in messages: "CASES.jsonl".
  void add_argument(std::string name, std::string* value, std::string help);

  /// Sets the variables from `arguments` (without the program's name). Throws rush::ValueError, one line that names the
  /// option, for an unknown option, a bad value or a missing argument; variables set before that stay set.
  void parse(const std::vector<std::string>& arguments);

  /// For `main`: prints the help and exits with 0 on `--help`; prints the error and exits with 2 on bad options, also
  /// on those for which `check` throws rush::ValueError: good values that do not go together.
  void parse_or_exit(int argc, char** argv, const std::function<void()>& check = {});

  /// A line per option with its default and its other names.
  std::string help() const;

 private:
  struct WholeNumber {
    int64_t* value;
    int64_t min, max;
  };
  struct Number {
    double* value;
    double min, max;
  };
  struct Text {
    std::string* value;
    std::vector<std::string> choices;
  };
  struct Flag {
    bool* value;
  };
  struct Option {
    std::string name, help, default_text;
    std::variant<WholeNumber, Number, Text, Flag> target;
    std::vector<std::string> aliases;
  };

  struct Argument {
    std::string name, help;
    std::string* value;
  };

  void add_option(std::string_view name, std::string help, std::string default_text,
                  std::variant<WholeNumber, Number, Text, Flag> target);
  const Option& find(const std::string& name) const;
  static void assign(const Option& option, const std::string& value);

  std::string program_, summary_;
  std::vector<Option> options_;
  std::vector<Argument> arguments_;
};

}  // namespace examples
