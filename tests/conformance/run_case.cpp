#include "tests/conformance/run_case.h"

#include <optional>
#include <vector>

#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "rushlight.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/factorization.h"

namespace conformance {

using nlohmann::json;
using rush::Tensor;
using rush::Value;
using Reason = std::optional<std::string>;

namespace {

rush::Stack bind(const Case& one, ArgumentReader& reader) {
  const rush::Schema schema = rush::Schema::parse(one.schema);
  std::vector<Value> positional;
  for (size_t i = 0; i < one.args.size(); ++i) {
    RUSH_CHECK_TYPE(i < schema.arguments.size(), "the case gives ", one.args.size(), " arguments, the schema takes ",
                    schema.arguments.size());
    positional.push_back(reader.read(one.args[i], schema.arguments[i].type));
  }
  std::vector<std::pair<std::string, Value>> named;
  for (const auto& [name, value] : one.kwargs.items()) {
    std::string type;
    for (const rush::Argument& argument : schema.arguments) {
      if (argument.name == name) type = argument.type;
    }
    named.emplace_back(name, reader.read(value, type));
  }
  return schema.bind(std::move(positional), std::move(named));
}

// All tensors of the results, lists one by one.
std::vector<Tensor> flatten(const rush::Stack& results) {
  std::vector<Tensor> tensors;
  for (const Value& value : results) {
    if (value.is<std::vector<Tensor>>()) {
      for (const Tensor& t : value.as<std::vector<Tensor>>()) tensors.push_back(t);
    } else {
      tensors.push_back(value.as<Tensor>());
    }
  }
  return tensors;
}

Reason output_difference(const Case& one, const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                         rush::Device device) {
  const auto tolerance = [&](const Tensor& output) {
    const Tolerance of_output = tolerance_for(output.scalar_type(), one.family, device);
    return loosest(of_output, tolerance_for(one.dtype, one.family, device));
  };
  if (is_factorization(one.family))
    return factorization_difference(one.family, actual, expected, tolerance(expected[0]));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (const Reason reason = difference(actual[i], expected[i], tolerance(expected[i]))) {
      return rush::str("output ", i, ": ", *reason);
    }
  }
  return std::nullopt;
}

// The gradient fed into each output; undefined where none is.
std::vector<Tensor> read_grad_outputs(const CaseFile& file, const Case& one, size_t count) {
  std::vector<Tensor> grads(count);
  for (const auto& [index, spec] : one.grad_outputs.items()) grads.at(std::stoul(index)) = file.tensor(spec);
  return grads;
}

Reason gradient_difference(const CaseFile& file, const Case& one, const ArgumentReader& reader,
                           const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                           rush::Device device) {
  std::vector<Tensor> grad_outputs = read_grad_outputs(file, one, actual.size());
  if (is_factorization(one.family)) grad_outputs = with_signs_of(one.family, actual, expected, grad_outputs);
  std::vector<Tensor> roots, root_grads, inputs;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!grad_outputs[i].defined()) continue;
    if (!actual[i].requires_grad()) return rush::str("output ", i, " does not require a gradient");
    roots.push_back(actual[i]);
    root_grads.push_back(grad_outputs[i].to(device));
  }
  for (const auto& [key, tensor] : reader.differentiated()) inputs.push_back(tensor);

  const auto grads = rush::autograd::grad(roots, inputs, root_grads, std::nullopt, false, /*allow_unused=*/true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& key = reader.differentiated()[i].first;
    const auto wanted = one.grads.find(key);
    if (wanted == one.grads.end()) continue;
    if (wanted->is_null()) {
      if (grads[i].defined()) return rush::str("gradient of ", key, ": there is one, expected none");
      continue;
    }
    const Tensor expected_grad = file.tensor(*wanted);
    const Tolerance tolerance = gradient_tolerance_for(expected_grad.scalar_type(), one.family, device);
    if (const Reason reason = difference(grads[i], expected_grad, tolerance)) {
      return rush::str("gradient of ", key, ": ", *reason);
    }
  }
  return std::nullopt;
}

Reason failure(const CaseFile& file, const Case& one, const rush::OpBase& op, rush::Device device) {
  if (op.schema() != one.schema) return rush::str("the schema is ", op.schema(), ", expected ", one.schema);
  ArgumentReader reader(file, device);
  rush::Stack stack = bind(one, reader);
  op.call_boxed(stack);

  const std::vector<Tensor> actual = flatten(stack);
  std::vector<Tensor> expected;
  for (const json& spec : one.outputs) expected.push_back(file.tensor(spec));
  if (actual.size() != expected.size()) {
    return rush::str("returns ", actual.size(), " tensors, expected ", expected.size());
  }
  if (const Reason reason = output_difference(one, actual, expected, device)) return reason;
  if (one.grad_outputs.empty()) return std::nullopt;
  return gradient_difference(file, one, reader, actual, expected, device);
}

}  // namespace

Verdict run_case(const CaseFile& file, const Case& one, rush::Device device) {
  const rush::OpBase* op = rush::registry().find(one.overload);
  if (!op) return {Outcome::Missing, one.overload + " is not registered"};
  Reason reason;
  try {
    reason = failure(file, one, *op, device);
  } catch (const std::exception& error) {
    reason = rush::str("threw: ", error.what());
  }
  return reason ? Verdict{Outcome::Failed, *reason} : Verdict{Outcome::Passed, ""};
}

}  // namespace conformance
