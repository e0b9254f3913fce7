// Schema: a parsed schema string, so that an operator can be called by name with defaults left out.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dispatch/value.h"

namespace rush {

struct Argument {
  std::string type;  // "Tensor", "int[2]", "Scalar?", alias annotations removed
  std::string name;
  std::optional<Value> default_value;
  bool keyword_only = false;
  std::string alias;        // "a" of "Tensor(a!)": the set of those that may share memory; empty for none
  bool is_written = false;  // "Tensor(a!)"

  bool optional() const { return type.ends_with('?'); }
  std::string kind() const;              // "int[]" of "int[2]?"
  bool takes(const Value& value) const;  // whether the value is of that kind, or none where one may be
};

/// "add" of "aten::add.Tensor": what errors call an operator.
std::string_view short_name(std::string_view name);

struct Schema {
  std::string name;  // "aten::add.Tensor"
  std::vector<Argument> arguments;
  std::vector<std::string> return_types, return_aliases;  // of each result, as an argument's
  int num_returns = 1;

  /// Throws ValueError when the text is not of the ATen form `name(type arg=default, *, ...) -> returns`.
  static Schema parse(std::string_view text);

  /// A stack of all arguments in order, from positional ones and named ones; what is left out takes its default.
  /// Numbers are fitted to the argument's type (2 for a float, 3 for an int[2], 4 for a Tensor). Throws TypeError
  /// naming the argument.
  std::vector<Value> bind(std::vector<Value> positional, std::vector<std::pair<std::string, Value>> named) const;
};

}  // namespace rush
