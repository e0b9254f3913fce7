// Command-line options of the programs, parsed by CLI11: `--name value` or `--name=value`, and `--help`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace examples {

/// The options of one program. Each is bound to a variable, whose value at that time is the default; the last value
/// that is given counts. Dashes and underscores inside a name are the same: `--batch-size` is `--batch_size`.
class Options {
 public:
  /// `program` begins error messages; `summary` is the first line of the help.
  Options(std::string program, std::string summary);
  ~Options();

  /// Adds an option; `names` are CLI11's, the first one stands in messages: "--learning_rate,--lr". A value outside
  /// [min, max] or not among `choices` (if there are any) is refused. A bool may stand alone: `--flag` is
  /// `--flag=true`.
  void add(const std::string& names, int64_t* value, std::string help,
           int64_t min = std::numeric_limits<int64_t>::lowest(), int64_t max = std::numeric_limits<int64_t>::max());
  void add(const std::string& names, double* value, std::string help,
           double min = std::numeric_limits<double>::lowest(), double max = std::numeric_limits<double>::max());
  void add(const std::string& names, std::string* value, std::string help, std::vector<std::string> choices = {});
  void add(const std::string& names, bool* value, std::string help);

  /// Adds an argument without a name, which must be given; `name` stands for it in messages: "CASES.jsonl".
  void add_argument(const std::string& name, std::string* value, std::string help);

  /// Sets the variables from `arguments` (without the program's name). Throws rush::ValueError, one line that names the
  /// option, for an unknown option, a bad value or a missing argument; variables set before that stay set.
  void parse(std::vector<std::string> arguments);

  /// For `main`: prints the help and exits with 0 on `--help`; prints the error and exits with 2 on bad options, also
  /// on those for which `check` throws rush::ValueError: good values that do not go together.
  void parse_or_exit(int argc, char** argv, const std::function<void()>& check = {});

  /// The names without dashes ("learning_rate") and values of all options, given or not, except empty values.
  std::vector<std::pair<std::string, std::string>> values() const;

  /// A line per option with its range, its default and its other names.
  std::string help() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
