#include "core/library/signature.h"

#include <algorithm>
#include <span>

#include "core/dispatch/schema.h"

namespace rush::library {

namespace {

std::string text(const SchemaType& type) {
  if (!type.name) return "of none of the types that schemas have";
  return str(type.name, type.optional ? "?" : "", type.written ? ", written" : "");
}

void check_name(std::string_view name) {
  const size_t colons = name.find("::");
  const bool has_both = colons != name.npos && colons > 0 && colons + 2 < name.size();
  RUSH_CHECK_VALUE(has_both && name.find(' ') == name.npos, "'", name,
                   "' needs a namespace and a name, as in \"my::scale(Tensor x) -> Tensor\"");
}

// What is the schema's alone: names, and defaults.
void check_argument(const OpBase& op, const Schema& schema, size_t i) {
  const Argument& argument = schema.arguments[i];
  const auto earlier = std::span(schema.arguments).first(i);
  RUSH_CHECK_VALUE(std::ranges::find(earlier, argument.name, &Argument::name) == earlier.end(), op.name(),
                   ": two arguments are named '", argument.name, "' in its schema");
  const auto& value = argument.default_value;
  RUSH_CHECK_TYPE(!value || argument.takes(*value), op.name(), ": argument #", i, " '", argument.name, "' is ",
                  argument.type, " in its schema, and its default ", value->kind());
}

}  // namespace

void check_signature(const OpBase& op, const Signature& signature) {
  const Schema schema = Schema::parse(op.schema());
  check_name(op.name());
  RUSH_CHECK_TYPE(schema.arguments.size() == signature.arguments.size(), op.name(), ": its schema has ",
                  schema.arguments.size(), " arguments, its C++ type ", signature.arguments.size());
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    const Argument& said = schema.arguments[i];
    const SchemaType& typed = signature.arguments[i];
    const bool is_same = typed.name && said.kind() == typed.name && said.optional() == typed.optional;
    RUSH_CHECK_TYPE(is_same && said.is_written == typed.written, op.name(), ": argument #", i, " '", said.name, "' is ",
                    said.type, said.is_written ? ", written," : "", " in its schema; in C++ it is ", text(typed));
    check_argument(op, schema, i);
  }
  RUSH_CHECK_TYPE(schema.return_types.size() == signature.results.size(), op.name(), ": its schema has ",
                  schema.num_returns, " results, its C++ type ", signature.results.size());
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const SchemaType& typed = signature.results[i];
    RUSH_CHECK_TYPE(typed.name && schema.return_types[i] == typed.name, op.name(), ": result #", i, " is ",
                    schema.return_types[i], " in its schema; in C++ it is ", text(typed));
  }
}

}  // namespace rush::library
