#include "torch/library.h"

#include <algorithm>
#include <map>

namespace rush::libtorch {

static std::map<std::string, OperatorInProgress>& operators_in_progress() {
  static auto& all = *new std::map<std::string, OperatorInProgress>;  // used by objects that are made before main()
  return all;
}

OperatorInProgress& operator_in_progress(const std::string& name) {
  auto& all = operators_in_progress();
  if (const auto found = all.find(name); found != all.end()) return found->second;
  RUSH_CHECK_VALUE(name.find("::") != std::string::npos && name.find("::") > 0, "TORCH_LIBRARY: the operator '", name,
                   "' has no namespace: write \"my::scale\"");
  RUSH_CHECK_VALUE(!registry().find(name), "TORCH_LIBRARY: there is an operator ", name,
                   " already; the functions of Rushlight's own cannot be replaced");
  return all[name];
}

void define(const std::string& schema, const std::vector<at::Tag>& tags) {
  OperatorInProgress& operation = operator_in_progress(schema.substr(0, schema.find('(')));
  RUSH_CHECK_VALUE(operation.schema.empty(), "TORCH_LIBRARY: defined twice, as ", operation.schema, " and as ", schema);
  operation.schema = schema;
  operation.has_dynamic_shape = std::ranges::find(tags, at::Tag::dynamic_output_shape) != tags.end();
  for (const auto& function : operation.waiting) function(operation);
  operation.waiting.clear();
}

static void append_type(std::string& out, const library::SchemaType& type, int& num_written) {
  out += type.name ? type.name : "a type of no schema";
  if (type.written) out += str("(", static_cast<char>('a' + num_written++), "!)");
  if (type.optional) out += "?";
}

std::string schema_of(const std::string& name, const library::Signature& signature) {
  std::string schema = name + "(";
  int num_written = 0;
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    if (i > 0) schema += ", ";
    append_type(schema, signature.arguments[i], num_written);
    schema += str(" _", i);
  }
  schema += ") -> ";
  if (signature.results.size() != 1) schema += "(";
  for (size_t i = 0; i < signature.results.size(); ++i) {
    if (i > 0) schema += ", ";
    append_type(schema, signature.results[i], num_written);
  }
  return signature.results.size() != 1 ? schema + ")" : schema;
}

Key key_named(std::string_view name) {
  static constexpr std::string_view kNeverCalled[] = {
      "QuantizedCPU",      "QuantizedCUDA",    "MkldnnCPU",   "Python",
      "PythonTLSSnapshot", "Functionalize",    "AutogradXPU", "AutogradMPS",
      "ADInplaceOrView",   "FuncTorchBatched", "Tracer"};
  if (std::ranges::find(kNeverCalled, name) != std::end(kNeverCalled)) return {Serves::Nothing};
  if (name == "CatchAll" || name == "CompositeImplicitAutograd") return {Serves::AllByOthers};
  if (name == "CompositeExplicitAutograd") return {Serves::AllDevices};
  if (name == "Autograd" || name == "AutogradCPU" || name == "AutogradCUDA") return {Serves::Autograd};
  if (name == "CPU") return {Serves::OneDevice, kCPU};
  if (name == "CUDA") return {Serves::OneDevice, kCUDA};
  if (name == "Meta") return {Serves::OneDevice, kMeta};
  if (name == "XPU") return {Serves::OneDevice, kXPU};
  if (name == "MPS") return {Serves::OneDevice, kMPS};
  if (name == "Autocast" || name == "AutocastCUDA") return {Serves::Autocast, kCUDA};
  if (name == "AutocastCPU") return {Serves::Autocast, kCPU};
  if (name == "AutocastXPU") return {Serves::Autocast, kXPU};
  if (name == "AutocastMPS") return {Serves::Autocast, kMPS};
  RUSH_THROW(
      NotImplementedError, "TORCH_LIBRARY_IMPL: no functions are registered for the key ", name,
      "; there are CPU, CUDA, Meta, Autograd, Autocast, CompositeImplicitAutograd and CompositeExplicitAutograd");
}

}  // namespace rush::libtorch
