// What a schema says of memory: which arguments an operator writes, and which of them a result shares.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rush::library {

/// An annotation: of "Tensor(a!) self" the set is "a", and it is written; of "Tensor x" it is empty.
struct Alias {
  std::string set;
  bool written = false;
};

/// The annotations of a schema, one for each argument and for each result. torch._C._AliasInfo.
struct Aliases {
  std::vector<Alias> arguments, results;

  /// Of a text that Schema::parse accepts.
  static Aliases parse(std::string_view schema);
};

}  // namespace rush::library
