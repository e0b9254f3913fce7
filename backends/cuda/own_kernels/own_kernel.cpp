#include "backends/cuda/own_kernels/own_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <utility>

#include "core/error/error_context.h"
#include "core/ops/factory/factories.h"

namespace rush::cuda {

namespace {

// Its bytes begin a slot, which is a parameter of the kernel.
template <class T>
uint64_t slot_of(T value) {
  uint64_t slot = 0;
  std::memcpy(&slot, &value, sizeof(T));
  return slot;
}
uint64_t slot_of_tensor(const Tensor* tensor) { return slot_of(tensor ? tensor->data_ptr() : nullptr); }

// Scalar::to lets negative numbers wrap around in unsigned ones.
template <class T>
uint64_t slot_of_number(const Scalar& number, const char* op, const std::string& name) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    RUSH_CHECK_VALUE(std::in_range<T>(number.toLong()), op, ": ", name, " is ", number.toLong(),
                     ", which the kernel's parameter cannot hold");
  }
  return slot_of(number.to<T>());
}

// Of those numbers that a kernel's parameter may be.
uint64_t slot_as(ScalarType dtype, const Scalar& number, const char* op, const std::string& name) {
  switch (dtype) {
#define RUSH_CASE(enumerator, type, ...)                                                                    \
  case ScalarType::enumerator:                                                                              \
    if constexpr (!is_complex_v<type> && !is_float8_v<type>) return slot_of_number<type>(number, op, name); \
    break;
    RUSH_FORALL_SCALAR_TYPES(RUSH_CASE)
#undef RUSH_CASE
  }
  RUSH_THROW(TypeError, op, ": ", name, " is a number, and the kernel's parameter ", dtype);
}

// The type of a schema that stands for a C++ type of KernelArgument.
bool takes(const Parameter& parameter, std::string_view schema_type) {
  if (schema_type.starts_with("Tensor")) return parameter.is_pointer;
  if (parameter.is_pointer) return false;
  return parameter.type_parameter || schema_type != "float" || is_floating_point(parameter.dtype);
}

const Tensor& first_tensor(std::span<const KernelArgument> arguments) {
  const auto is_tensor = [](const KernelArgument& each) { return each.tensor != nullptr; };
  return *std::find_if(arguments.begin(), arguments.end(), is_tensor)->tensor;
}

}  // namespace

// The kernel for each choice of type parameters, as it is asked for. A list: what was handed out stays where it is.
struct OwnKernel::Instances {
  std::mutex mutex;
  std::list<std::pair<DtypeVector, jit::Kernel>> all;
};

OwnKernel::OwnKernel(std::string name, std::string source, std::string schema, KernelOptions options,
                     SourceLocation where)
    : source_name_(std::move(name)),
      source_(std::move(source)),
      schema_(std::move(schema)),
      options_(std::move(options)),
      where_(where),
      signature_(read_signature(source_, options_.kernel)),
      instances_(std::make_shared<Instances>()) {
  const Schema parsed = Schema::parse(schema_);
  op_name_ = parsed.name;
  results_ = static_cast<size_t>(parsed.num_returns);
  names_.assign(results_, "a result");
  for (const Argument& each : parsed.arguments) names_.push_back(each.name);
  RUSH_CHECK_VALUE(std::ranges::count(parsed.arguments, "Tensor", &Argument::type), op_name(),
                   ": a kernel has a tensor among its arguments, which says where it runs");
  RUSH_CHECK_VALUE(options_.block > 0 && options_.block <= 1024 && options_.elements_per_thread > 0, op_name(),
                   ": a block of ", options_.block, " threads for ", options_.elements_per_thread,
                   " elements each; expected 1 to 1024 threads, at least one element");
  check_parameters(parsed);
}

void OwnKernel::check_parameters(const Schema& schema) const {
  const std::vector<Parameter>& parameters = signature_.parameters;
  const size_t expected = names_.size();
  RUSH_CHECK_VALUE(parameters.size() == expected || parameters.size() == expected + 1, op_name(), ": the kernel ",
                   signature_.name, " has ", parameters.size(), " parameters; expected ", results_, " results, ",
                   schema.arguments.size(), " arguments, and the number of elements, which may be left out");
  for (size_t i = 0; i < expected; ++i) {
    const bool is_result = i < results_;
    const std::string type = is_result ? "Tensor" : schema.arguments[i - results_].type;
    RUSH_CHECK_TYPE(takes(parameters[i], type), op_name(), ": ", names_[i], " is ", type, ", which parameter ",
                    parameters[i].name, " of the kernel cannot take");
    RUSH_CHECK_TYPE(is_result || !parameters[i].is_pointer || parameters[i].is_const, op_name(), ": parameter ",
                    parameters[i].name, " of the kernel is for an argument, which is not written: expected const ",
                    parameters[i].type, "*");
  }
  if (parameters.size() == expected) return;
  const bool is_count = !parameters.back().is_pointer && !parameters.back().type_parameter;
  RUSH_CHECK_TYPE(is_count && parameters.back().dtype == kInt64, op_name(), ": the kernel's last parameter, ",
                  parameters.back().name, ", is for the number of elements: expected int64_t");
}

void OwnKernel::check(std::span<const KernelArgument> arguments, bool differentiable) const {
  const Device device = first_tensor(arguments).device();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].tensor) continue;
    const Tensor& tensor = *arguments[i].tensor;
    RUSH_CHECK_NOT_IMPLEMENTED(tensor.is_cuda() || tensor.is_meta(), op_name(), ": ", name(i), " is on ",
                               tensor.device(), ", the kernel runs on a GPU");
    RUSH_CHECK_VALUE(tensor.device() == device, op_name(), ": ", name(i), " is on ", tensor.device(),
                     ", the first tensor on ", device);
    RUSH_CHECK_VALUE(tensor.is_contiguous(), op_name(), ": ", name(i),
                     " is not contiguous, which the kernel expects: ", name(i), ".contiguous()");
    RUSH_CHECK_NOT_IMPLEMENTED(differentiable || !dispatch_state.grad_mode || !tensor.requires_grad(), op_name(),
                               ": has no derivative, and ", name(i),
                               " requires a gradient; rush::derivative gives it one");
  }
}

Tensor OwnKernel::like_first(std::span<const KernelArgument> arguments) const {
  const Tensor& first = first_tensor(arguments);
  return empty(first.sizes(), first.options());
}

void OwnKernel::check_results(std::span<const Tensor> results, std::span<const KernelArgument> arguments) const {
  const Device device = first_tensor(arguments).device();
  for (const Tensor& result : results) {
    RUSH_CHECK_VALUE(result.defined() && result.is_contiguous() && result.device() == device, op_name(),
                     ": the meta function returned a result that is not contiguous, or not on ", device);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Tensor* argument = arguments[i].tensor;
      RUSH_CHECK_VALUE(!argument || !result.is_alias_of(*argument), op_name(),
                       ": the meta function returned memory of ", name(i),
                       ", which the kernel must not write: expected new tensors");
    }
  }
}

jit::Shape OwnKernel::shape_for(int64_t n) const {
  const int64_t each = options_.block * options_.elements_per_thread;
  const int64_t blocks = (n + each - 1) / each;
  RUSH_CHECK_VALUE(blocks <= std::numeric_limits<int32_t>::max(), op_name(), ": ", n, " elements need ", blocks,
                   " blocks, more than a grid has; see elements_per_thread");
  return {{static_cast<uint32_t>(blocks)}, {static_cast<uint32_t>(options_.block)}};
}

OwnKernel::DtypeVector OwnKernel::type_arguments(std::span<const Tensor> results,
                                                 std::span<const KernelArgument> arguments) const {
  InlineVector<std::optional<ScalarType>, 4> found(signature_.type_parameters.size(), std::nullopt);
  for (size_t i = 0; i < names_.size(); ++i) {
    const Parameter& parameter = signature_.parameters[i];
    const Tensor* tensor = i < results_ ? &results[i] : arguments[i - results_].tensor;
    if (!tensor) continue;
    ScalarType expected = parameter.dtype;
    if (parameter.type_parameter) {
      std::optional<ScalarType>& argument = found[*parameter.type_parameter];
      if (!argument) argument = tensor->scalar_type();
      expected = *argument;
    }
    RUSH_CHECK_TYPE(tensor->scalar_type() == expected, op_name(), ": ", names_[i], " is ", tensor->scalar_type(),
                    ", parameter ", parameter.name, " of the kernel ", expected);
  }
  DtypeVector types;
  for (const std::optional<ScalarType>& dtype : found) {
    RUSH_CHECK_TYPE(dtype, op_name(), ": no tensor tells what ", signature_.type_parameters[types.size()], " is");
    const std::vector<ScalarType>& listed = options_.dtypes;
    RUSH_CHECK_NOT_IMPLEMENTED(listed.empty() ? has_arithmetic(*dtype) : std::ranges::count(listed, *dtype) > 0,
                               op_name(), ": not implemented for ", *dtype);
    types.push_back(*dtype);
  }
  return types;
}

const jit::Kernel& OwnKernel::instance(const DtypeVector& types) const {
  const std::lock_guard lock(instances_->mutex);
  for (const auto& [of, kernel] : instances_->all) {
    if (of == types) return kernel;
  }
  std::string name = signature_.name;
  for (size_t i = 0; i < types.size(); ++i) name += str(i == 0 ? "<" : ", ", cpp_name(types[i]));
  if (!types.empty()) name += ">";
  jit::Kernel kernel({source_name_, source_, {name}, options_.compile_options});
  return instances_->all.emplace_back(types, std::move(kernel)).second;
}

void OwnKernel::launch(std::span<const Tensor> results, std::span<const KernelArgument> arguments,
                       const jit::Shape& shape) const {
  const DtypeVector types = type_arguments(results, arguments);
  if (results[0].is_meta() || shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  InlineVector<uint64_t, 12> slots;
  for (const Tensor& result : results) slots.push_back(slot_of_tensor(&result));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = signature_.parameters[slots.size()];
    const ScalarType dtype = parameter.type_parameter ? types[*parameter.type_parameter] : parameter.dtype;
    const KernelArgument& each = arguments[i];
    slots.push_back(each.number ? slot_as(dtype, *each.number, op_name(), name(i)) : slot_of_tensor(each.tensor));
  }
  slots.push_back(slot_of(results[0].numel()));  // what a kernel without such a parameter is not given
  InlineVector<void*, 12> addresses;
  for (uint64_t& slot : slots) addresses.push_back(&slot);
  const ErrorContext context(described, this);
  instance(types).launch(op_name(), shape, addresses.data());
}

std::string OwnKernel::described(const void* kernel) {
  const auto* self = static_cast<const OwnKernel*>(kernel);
  return str("in the kernel of ", self->op_name_, ", made at ", self->where_.file_name(), ":", self->where_.line());
}

}  // namespace rush::cuda
