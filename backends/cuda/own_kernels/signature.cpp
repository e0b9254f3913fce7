#include "backends/cuda/own_kernels/signature.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "core/error/error.h"

namespace rush::cuda {

namespace {

using Tokens = std::vector<std::string_view>;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }

// The source without comments, strings and preprocessor lines: words, in which "::" counts as a letter, and signs.
Tokens tokens_of(std::string_view source) {
  Tokens tokens;
  const auto skip_to = [&](size_t from, std::string_view end) {
    const size_t at = source.find(end, from);
    return at == source.npos ? source.size() : at + end.size();
  };
  for (size_t i = 0; i < source.size();) {
    const std::string_view rest = source.substr(i);  // not empty
    if (rest.starts_with("//") || rest[0] == '#') {
      i = skip_to(i, "\n");
    } else if (rest.starts_with("/*")) {
      i = skip_to(i + 2, "*/");
    } else if (rest[0] == '"') {
      for (++i; i < source.size() && source[i] != '"';) i += source[i] == '\\' ? 2 : 1;
      ++i;
    } else if (in_word(rest[0])) {
      const size_t size = static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), in_word) - rest.begin());
      tokens.push_back(rest.substr(0, size));
      i += size;
    } else {
      if (!std::isspace(static_cast<unsigned char>(rest[0]))) tokens.push_back(rest.substr(0, 1));
      ++i;
    }
  }
  return tokens;
}

bool is_word(std::string_view token) { return in_word(token[0]); }
bool is_one_of(std::string_view token, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), token) != words.end();
}

class SignatureReader {
 public:
  explicit SignatureReader(std::string_view source) : tokens_(tokens_of(source)) {}

  Signature read(std::string_view kernel) {
    std::vector<Tokens> type_parameters;
    while (at_ < tokens_.size()) {
      const std::string_view token = tokens_[at_++];
      if (token == "template" && peek() == "<") {
        type_parameters = read_list("<", ">");
      } else if (is_one_of(token, {";", "{", "}"})) {
        type_parameters.clear();
      } else if (token == "__global__") {
        Signature signature{read_name(), {}, {}};
        const std::vector<Tokens> parameters = read_list("(", ")");
        if (!kernel.empty() && signature.name != kernel) continue;
        for (const Tokens& each : type_parameters) signature.type_parameters.push_back(type_parameter_of(each));
        for (const Tokens& each : parameters) signature.parameters.push_back(parameter_of(each, signature));
        return signature;
      }
    }
    RUSH_THROW(ValueError, "cuda_kernel: the source has no __global__ function",
               kernel.empty() ? std::string() : str(" named ", kernel));
  }

 private:
  std::string_view peek() const { return at_ < tokens_.size() ? tokens_[at_] : std::string_view("its end"); }

  // What stands between brackets, split at the commas outside of other brackets. Goes to behind the closing one.
  std::vector<Tokens> read_list(std::string_view open, std::string_view close) {
    std::vector<Tokens> list;
    RUSH_CHECK_VALUE(peek() == open, "cuda_kernel: expected ", open, " in the source, got ", peek());
    ++at_;
    if (peek() != close) list.emplace_back();
    for (int depth = 0; at_ < tokens_.size(); ++at_) {
      const std::string_view token = tokens_[at_];
      if (depth == 0 && token == close) break;
      if (is_one_of(token, {"(", "<", "["})) ++depth;
      if (is_one_of(token, {")", ">", "]"})) --depth;
      if (depth == 0 && token == ",") {
        list.emplace_back();
      } else {
        list.back().push_back(token);
      }
    }
    RUSH_CHECK_VALUE(at_ < tokens_.size(), "cuda_kernel: a list of parameters has no ", close, " at its end");
    ++at_;
    return list;
  }

  static std::string type_parameter_of(const Tokens& tokens) {
    const bool is_type = tokens.size() == 2 && is_one_of(tokens[0], {"class", "typename"});
    RUSH_CHECK_VALUE(is_type, "cuda_kernel: cannot read `template <", joined(tokens),
                     ">`: expected `class` or `typename` and a name");
    return std::string(tokens[1]);
  }

  // The word before the list of parameters; attributes, such as __launch_bounds__(256), have lists of their own.
  std::string read_name() {
    std::string_view name;
    while (at_ < tokens_.size() && peek() != "(") {
      name = tokens_[at_++];
      if (name.starts_with("__") && peek() == "(") read_list("(", ")");
    }
    return std::string(name);
  }

  static Parameter parameter_of(const Tokens& tokens, const Signature& of) {
    Parameter parameter;
    Tokens words;
    for (const std::string_view token : tokens) {
      if (is_one_of(token, {"volatile", "__restrict__", "__restrict", "__grid_constant__"})) continue;
      if (token == "*" && !parameter.is_pointer) {
        parameter.is_pointer = true;
      } else if (token == "const") {
        parameter.is_const = parameter.is_const || !parameter.is_pointer;
      } else {
        words.push_back(token);
      }
    }
    RUSH_CHECK_VALUE(words.size() >= 2 && is_word(words.back()), "cuda_kernel: cannot read parameter `", joined(tokens),
                     "`: expected a type and a name");
    parameter.name = words.back();
    words.pop_back();
    parameter.type = joined(words);
    const std::vector<std::string>& types = of.type_parameters;
    const auto found = std::find(types.begin(), types.end(), parameter.type);
    const std::optional<ScalarType> dtype = dtype_named(parameter.type);
    if (found != types.end()) {
      parameter.type_parameter = static_cast<size_t>(found - types.begin());
    } else {
      RUSH_CHECK_VALUE(dtype, "cuda_kernel: parameter ", parameter.name, " of ", of.name, " has type ", parameter.type,
                       ", which is no dtype's");
      parameter.dtype = *dtype;
    }
    return parameter;
  }

  // The tokens as text, with a space between words.
  static std::string joined(const Tokens& tokens) {
    std::string text;
    for (const std::string_view token : tokens) {
      if (!text.empty() && in_word(text.back()) && is_word(token)) text += ' ';
      text += token;
    }
    return text;
  }

  Tokens tokens_;
  size_t at_ = 0;
};

struct NamedDtype {
  const char* name;
  ScalarType dtype;
};
// That of the table of dtypes first, in its order.
// clang-format off
constexpr NamedDtype kNamedDtypes[] = {
#define RUSH_NAME(enumerator, type, ...) {#type, ScalarType::enumerator},
    RUSH_FORALL_SCALAR_TYPES(RUSH_NAME)
#undef RUSH_NAME
    {"signed char", kInt8}, {"unsigned char", kUInt8}, {"short", kInt16}, {"unsigned short", kUInt16}, {"int", kInt32},
    {"unsigned", kUInt32}, {"unsigned int", kUInt32}, {"long", kInt64}, {"long long", kInt64}, {"size_t", kUInt64},
    {"unsigned long", kUInt64}, {"unsigned long long", kUInt64}, {"half", kFloat16}, {"__half", kFloat16},
    {"__nv_bfloat16", kBFloat16},
};
// clang-format on

// "rush::Half" and "::rush::Half" are "Half", "std::int64_t" is "int64_t".
std::string_view without_namespace(std::string_view type) {
  for (const std::string_view prefix : {"::", "rush::", "std::"}) {
    if (type.starts_with(prefix)) type.remove_prefix(prefix.size());
  }
  return type;
}

}  // namespace

Signature read_signature(std::string_view source, std::string_view kernel) {
  return SignatureReader(source).read(kernel);
}

std::optional<ScalarType> dtype_named(std::string_view type) {
  for (const NamedDtype& each : kNamedDtypes) {
    if (without_namespace(each.name) == without_namespace(type)) return each.dtype;
  }
  return {};
}

const char* cpp_name(ScalarType dtype) { return kNamedDtypes[static_cast<int>(dtype)].name; }

}  // namespace rush::cuda
