#include "core/library/signature.h"

#include "core/dispatch/schema.h"

namespace rush::library {

namespace {

// "int[2]?" -> "int[]": C++ types know no lengths, and say apart that something is optional.
std::string without_length(std::string type) {
  if (type.ends_with('?')) type.pop_back();
  const size_t open = type.rfind('[');
  if (open != type.npos) type = type.substr(0, open) + "[]";
  return type;
}

std::string text(const SchemaType& type) {
  if (!type.name) return "of none of the types that schemas have";
  return str(type.name, type.optional ? "?" : "", type.written ? ", written" : "");
}

}  // namespace

void check_signature(const OpBase& op, const Signature& signature) {
  const Schema schema = Schema::parse(op.schema());
  RUSH_CHECK_TYPE(schema.arguments.size() == signature.arguments.size(), op.name(), ": its schema has ",
                  schema.arguments.size(), " arguments, its C++ type ", signature.arguments.size());
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    const Argument& said = schema.arguments[i];
    const SchemaType& typed = signature.arguments[i];
    const bool is_same = typed.name && without_length(said.type) == typed.name && said.optional() == typed.optional;
    RUSH_CHECK_TYPE(is_same && said.is_written == typed.written, op.name(), ": argument #", i, " '", said.name, "' is ",
                    said.type, said.is_written ? ", written," : "", " in its schema; in C++ it is ", text(typed));
  }
  RUSH_CHECK_TYPE(schema.return_aliases.size() == signature.results, op.name(), ": its schema has ", schema.num_returns,
                  " results, its C++ type ", signature.results);
}

}  // namespace rush::library
