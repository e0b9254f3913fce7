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

// A result that is one tensor or one number, which is a tensor without dimensions.
Tensor as_tensor(const Value& value) {
  if (value.is<bool>()) return rush::scalar_tensor(value.as<bool>(), rush::kBool);
  if (value.is<int64_t>()) return rush::scalar_tensor(value.as<int64_t>(), rush::kInt64);
  if (value.is<double>()) return rush::scalar_tensor(value.as<double>(), rush::kFloat64);
  if (value.is<rush::complex<double>>())
    return rush::scalar_tensor(value.as<rush::complex<double>>(), rush::kComplex128);
  return value.as<Tensor>();
}

// All tensors of the results, lists one by one.
std::vector<Tensor> flatten(const rush::Stack& results) {
  std::vector<Tensor> tensors;
  for (const Value& value : results) {
    if (value.is<std::vector<Tensor>>()) {
      for (const Tensor& t : value.as<std::vector<Tensor>>()) tensors.push_back(t);
    } else {
      tensors.push_back(as_tensor(value));
    }
  }
  return tensors;
}

// The arguments that an operator without results writes.
rush::Stack written(const rush::OpBase& op, const rush::Stack& arguments) {
  const rush::Schema schema = rush::Schema::parse(op.schema());
  rush::Stack values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments[i].is_written) values.push_back(arguments[i]);
  }
  return values;
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
    if (!expected[i].defined()) {
      if (actual[i].defined()) return rush::str("output ", i, ": there is one, expected none");
    } else if (const Reason reason = difference(actual[i], expected[i], tolerance(expected[i]))) {
      return rush::str("output ", i, ": ", *reason);
    }
  }
  return std::nullopt;
}

// Whether two tensors of these sizes are laid out alike: what a dimension of one element strides over is no matter.
bool same_strides(rush::IntArrayRef sizes, rush::IntArrayRef actual, const std::vector<int64_t>& expected) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && actual[d] != expected[d]) return false;
  }
  return true;
}

// Which of the arguments an output shares its memory with: its key, or nothing.
json shared_argument(const Tensor& output, const ArgumentReader& reader) {
  for (const auto& [key, tensor] : reader.tensors()) {
    if (output.is_alias_of(tensor)) return key;
  }
  return nullptr;
}

// Where the case says so, outputs have its strides, and share the memory of an argument or of none.
Reason layout_difference(const Case& one, const std::vector<Tensor>& outputs, const ArgumentReader& reader) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const json& spec = one.outputs[i];
    if (!spec.is_object() || !spec.contains("strides")) continue;
    const std::vector<int64_t> strides = spec["strides"];
    if (!same_strides(outputs[i].sizes(), outputs[i].strides(), strides))
      return rush::str("layout: output ", i, " has strides ", outputs[i].strides(), ", expected ", strides);
    const json shared = shared_argument(outputs[i], reader);
    if (shared != spec["shares"])
      return rush::str("layout: output ", i, " shares memory with ", shared.dump(), ", expected ",
                       spec["shares"].dump());
  }
  return std::nullopt;
}

// The gradient fed into each output; undefined where none is.
std::vector<Tensor> read_grad_outputs(const CaseFile& file, const Case& one, size_t count) {
  std::vector<Tensor> grads(count);
  for (const auto& [index, spec] : one.grad_outputs.items()) grads.at(std::stoul(index)) = file.tensor(spec);
  return grads;
}

// The gradients at `inputs` of the outputs that the case feeds one into.
std::vector<Tensor> compute_gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grad_outputs,
                                      const std::vector<Tensor>& inputs, rush::Device device) {
  std::vector<Tensor> roots, root_grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!grad_outputs[i].defined()) continue;
    RUSH_CHECK(outputs[i].requires_grad(), "output ", i, " does not require a gradient");
    roots.push_back(outputs[i]);
    root_grads.push_back(grad_outputs[i].to(device));
  }
  return rush::autograd::grad(roots, inputs, root_grads, std::nullopt, false, /*allow_unused=*/true);
}

std::vector<Tensor> differentiated(const ArgumentReader& reader) {
  std::vector<Tensor> inputs;
  for (const auto& [key, tensor] : reader.differentiated()) inputs.push_back(tensor);
  return inputs;
}

Reason gradient_difference(const CaseFile& file, const Case& one, const ArgumentReader& reader,
                           const std::vector<Tensor>& grads, rush::Device device) {
  for (size_t i = 0; i < grads.size(); ++i) {
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

// What a case's operator gave.
struct Results {
  std::vector<Tensor> outputs, gradients;
};

Results run_as_it_stands(const CaseFile& file, const Case& one, const rush::OpBase& op, ArgumentReader& reader,
                         const std::vector<Tensor>& expected, rush::Device device) {
  rush::Stack stack = bind(one, reader);
  const rush::Stack arguments = stack;
  op.call_boxed(stack);
  Results results{flatten(stack.empty() ? written(op, arguments) : stack), {}};
  if (one.grad_outputs.empty() || results.outputs.size() != expected.size()) return results;
  std::vector<Tensor> grad_outputs = read_grad_outputs(file, one, results.outputs.size());
  if (is_factorization(one.family)) grad_outputs = with_signs_of(one.family, results.outputs, expected, grad_outputs);
  results.gradients = compute_gradients(results.outputs, grad_outputs, differentiated(reader), device);
  return results;
}

// The tensors on a stack are the compiled function's inputs.
std::vector<Tensor> tensors_on(const rush::Stack& stack) {
  std::vector<Tensor> tensors;
  for (const Value& value : stack) {
    if (value.is<Tensor>() && value.as<Tensor>().defined()) tensors.push_back(value.as<Tensor>());
    if (!value.is<std::vector<Tensor>>()) continue;
    for (const Tensor& t : value.as<std::vector<Tensor>>()) tensors.push_back(t);
  }
  return tensors;
}

// A later call of the compiled function, the first two of which are traced; a device that records gives what it
// replays. On arguments that are read again, since the operator may write them, and on the same random numbers.
Results run_compiled(const CaseFile& file, const Case& one, const rush::OpBase& op, ArgumentReader& reader,
                     const std::vector<Tensor>& expected, rush::Device device) {
  rush::compiler::CompiledFunction compiled({.fewest_kernels = 1, .fewest_recorded = 1});
  const int calls_before = device.is_accelerator() ? 8 : 2;
  size_t outputs = 0;
  rush::Generator generator = rush::default_generator(device);
  const std::vector<uint8_t> state = generator.get_state();
  const auto call = [&](ArgumentReader& arguments) {
    generator.set_state(state);
    const rush::Stack stack = bind(one, arguments);
    std::vector<Tensor> grad_outputs = read_grad_outputs(file, one, expected.size());
    for (Tensor& grad : grad_outputs) {
      if (grad.defined()) grad = grad.to(device);
    }
    const auto function = [&](const std::vector<Tensor>&) {
      rush::Stack results = stack;
      op.call_boxed(results);
      std::vector<Tensor> all = flatten(results.empty() ? written(op, stack) : results);
      outputs = all.size();
      if (one.grad_outputs.empty() || outputs != expected.size()) return all;
      for (const Tensor& grad : compute_gradients(all, grad_outputs, differentiated(arguments), device))
        all.push_back(grad);
      for (size_t i = 0; i < outputs; ++i) {
        if (all[i].defined()) all[i] = all[i].detach();
      }
      return all;
    };
    return compiled.call(function, tensors_on(stack));
  };
  for (int i = 0; i < calls_before; ++i) {
    ArgumentReader arguments(file, device);
    call(arguments);
  }
  std::vector<Tensor> all = call(reader);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(outputs);
  return {{all.begin(), middle}, {middle, all.end()}};
}

Reason failure(const CaseFile& file, const Case& one, const rush::OpBase& op, rush::Device device, bool is_compiled) {
  if (op.schema() != one.schema) return rush::str("the schema is ", op.schema(), ", expected ", one.schema);
  std::vector<Tensor> expected;
  for (const json& spec : one.outputs) expected.push_back(spec.is_null() ? Tensor() : file.tensor(spec));
  ArgumentReader reader(file, device);
  const bool can_compile = is_compiled && !is_factorization(one.family);  // the signs of these are read from results
  const Results results = can_compile ? run_compiled(file, one, op, reader, expected, device)
                                      : run_as_it_stands(file, one, op, reader, expected, device);
  if (results.outputs.size() != expected.size()) {
    return rush::str("returns ", results.outputs.size(), " tensors, expected ", expected.size());
  }
  if (const Reason reason = output_difference(one, results.outputs, expected, device)) return reason;
  if (const Reason reason = gradient_difference(file, one, reader, results.gradients, device)) return reason;
  const bool is_laid_out_so = file.order() == ArgumentOrder::RowMajor && !can_compile;
  return is_laid_out_so ? layout_difference(one, results.outputs, reader) : std::nullopt;
}

// Whether the operator throws an error of ours; what else is thrown is no refusal.
Reason acceptance(const CaseFile& file, const Case& one, const rush::OpBase& op, rush::Device device) {
  ArgumentReader reader(file, device);
  try {
    rush::Stack stack = bind(one, reader);
    op.call_boxed(stack);
  } catch (const rush::Error&) {
    return std::nullopt;
  }
  return "is not refused, expected: " + one.refused;
}

}  // namespace

Verdict run_case(const CaseFile& file, const Case& one, rush::Device device, bool is_compiled) {
  const rush::OpBase* op = rush::registry().find(one.overload);
  if (!op) return {Outcome::Missing, one.overload + " is not registered"};
  Reason reason;
  try {
    reason = one.refused.empty() ? failure(file, one, *op, device, is_compiled) : acceptance(file, one, *op, device);
  } catch (const std::exception& error) {
    reason = rush::str("threw: ", error.what());
  }
  return reason ? Verdict{Outcome::Failed, *reason} : Verdict{Outcome::Passed, ""};
}

}  // namespace conformance
