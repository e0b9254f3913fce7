#include "autograd/library/opcheck.h"

#include <cstring>

#include "autograd/grad_mode.h"
#include "core/device/backend.h"
#include "core/dispatch/call.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/basic.h"

namespace rush::library::detail {

namespace {

using TensorMap = std::function<Tensor(const Tensor&)>;

// Of an argument or a result.
Tensors defined_tensors(const Value& value) {
  Tensors tensors = tensors_of(value);
  std::erase_if(tensors, [](const Tensor& each) { return !each.defined(); });
  return tensors;
}

Value map_value(const Value& value, const TensorMap& map) {
  Tensors tensors = tensors_of(value);
  for (Tensor& tensor : tensors) {
    if (tensor.defined()) tensor = map(tensor);
  }
  return with_tensors(value, std::move(tensors));
}

Stack map_tensors(Stack stack, const TensorMap& map) {
  for (Value& value : stack) value = map_value(value, map);
  return stack;
}

Tensor copy_of(const Tensor& tensor) { return tensor.detach().clone(); }

Tensor without_data(const Tensor& tensor) {
  return empty_strided(tensor.sizes(), tensor.strides(), TensorOptions(tensor.scalar_type()).device(kMeta));
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return x.numel() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

bool is_close(const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return a.is_floating_point() || a.is_complex() ? allclose(a.cpu(), b.cpu(), rtol, atol, true) : same_bytes(a, b);
}

// Strides of dimensions that have one element, and of empty tensors, mean nothing.
bool same_strides(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return true;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

std::string describe(const Tensor& tensor) {
  return str(tensor.scalar_type(), " of ", tensor.sizes(), " with strides ", tensor.strides());
}

// One check after another; each adds what it finds.
class Check {
 public:
  Check(const OpBase& op, const StackCall& typed, Stack arguments, const OpcheckOptions& options)
      : op_(op),
        schema_(Schema::parse(op.schema())),
        typed_(typed),
        arguments_(std::move(arguments)),
        options_(options) {}

  OpcheckReport run() {
    if (call_without_recording()) {
      writes();
      sharing();
      meta();
      if (calls_by_name()) strides();
      derivative();
      devices();
    }
    return std::move(report_);
  }

 private:
  template <class... Parts>
  void problem(const Parts&... parts) {
    report_.problems.push_back(str(parts...));
  }
  template <class... Parts>
  void left_out(const Parts&... parts) {
    report_.left_out.push_back(str(parts...));
  }

  std::string argument(size_t i) const { return str("argument #", i, " '", schema_.arguments[i].name, "'"); }
  Stack copies() const { return map_tensors(arguments_, copy_of); }

  // The call that the next checks look at.
  bool call_without_recording() {
    const NoGradGuard no_grad;
    used_ = copies();
    try {
      results_ = typed_(used_);
      return true;
    } catch (const std::exception& error) {
      problem("the call throws: ", error.what());
      return false;
    }
  }

  void writes() {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Tensors before = defined_tensors(arguments_[i]), after = defined_tensors(used_[i]);
      for (size_t t = 0; t < before.size(); ++t) {
        if (schema_.arguments[i].is_written || same_bytes(before[t], after[t])) continue;
        problem("the call writes ", argument(i), ", and the schema does not say so: Tensor(a!) ",
                schema_.arguments[i].name);
        break;
      }
    }
  }

  void sharing() {
    for (size_t r = 0; r < results_.size(); ++r) {
      for (size_t i = 0; i < used_.size(); ++i) {
        const std::string& set = schema_.return_aliases[r];
        if (!set.empty() && set == schema_.arguments[i].alias) continue;
        if (share_memory(results_[r], used_[i])) {
          problem("result #", r, " shares the memory of ", argument(i),
                  ", and the schema does not say so: return a copy, or write (a) behind both types");
        }
      }
    }
  }
  static bool share_memory(const Value& result, const Value& argument) {
    for (const Tensor& a : defined_tensors(result)) {
      for (const Tensor& b : defined_tensors(argument)) {
        if (a.has_storage() && b.has_storage() && a.nbytes() > 0 && a.is_alias_of(b)) return true;
      }
    }
    return false;
  }

  void meta() {
    const NoGradGuard no_grad;
    Stack given = map_tensors(arguments_, without_data), results;
    for (Value& value : given) {
      if (value.is<Device>()) value = Device(kMeta);
    }
    try {
      results = typed_(given);
    } catch (const NotImplementedError& error) {
      return problem("there is no meta function: ", error.msg());
    } catch (const std::exception& error) {
      return problem("the meta function throws: ", error.what());
    }
    for (size_t r = 0; r < results_.size(); ++r)
      compare_with_meta(r, defined_tensors(results_[r]), defined_tensors(results[r]));
  }
  void compare_with_meta(size_t r, const Tensors& real, const Tensors& meta) {
    if (real.size() != meta.size()) {
      return problem("the meta function gives ", meta.size(), " tensors as result #", r, ", the kernel ", real.size());
    }
    for (size_t t = 0; t < real.size(); ++t) {
      const bool agree = real[t].sizes() == meta[t].sizes() && real[t].scalar_type() == meta[t].scalar_type() &&
                         same_strides(real[t], meta[t]);
      if (!agree) {
        problem("result #", r, " is ", describe(real[t]), "; the meta function says ", describe(meta[t]));
      } else if (!meta[t].device().is_meta()) {
        problem("the meta function gives result #", r, " on ", meta[t].device(), ", not on meta");
      }
    }
  }

  // The same values, column-major.
  static Tensor in_reverse(const Tensor& tensor) {
    DimVector order;
    for (int64_t d = tensor.dim() - 1; d >= 0; --d) order.push_back(d);
    return copy_of(tensor).permute(order).contiguous().permute(order);
  }
  void strides() {
    const NoGradGuard no_grad;
    try {
      const Stack results = typed_(map_tensors(arguments_, in_reverse));
      if (!same(results_, results, options_.rtol, options_.atol)) {
        problem("the results are others when the arguments have other strides: the kernel ignores them");
      }
    } catch (const std::exception& error) {
      left_out("the results for other strides: ", error.what());
    }
  }

  bool calls_by_name() {
    const NoGradGuard no_grad;
    if (registry().find(op_.name()) != &op_) {
      problem("is not the operator that is registered by its name");
      return false;
    }
    std::vector<std::pair<std::string, Value>> named;
    Stack given = copies();
    for (size_t i = 0; i < given.size(); ++i) named.emplace_back(schema_.arguments[i].name, given[i]);
    try {
      const Stack results = call_operator(op_.name(), {}, named);
      if (same(results_, results, 0, 0)) return true;
      problem("a call by name gives other results than a typed one");
    } catch (const std::exception& error) {
      problem("a call by name throws: ", error.what());
    }
    return false;
  }
  static bool same(const Stack& a, const Stack& b, double rtol, double atol) {
    if (a.size() != b.size()) return false;
    for (size_t r = 0; r < a.size(); ++r) {
      const Tensors x = defined_tensors(a[r]), y = defined_tensors(b[r]);
      if (x.size() != y.size()) return false;
      for (size_t t = 0; t < x.size(); ++t) {
        if (!is_close(x[t], y[t], rtol, atol)) return false;
      }
    }
    return true;
  }

  // The arguments' tensors that require gradients, as float64.
  Tensors wanted() const {
    Tensors inputs;
    for (const Value& value : arguments_) {
      for (const Tensor& tensor : defined_tensors(value)) {
        if (tensor.requires_grad()) inputs.push_back(in_double(tensor).requires_grad_());
      }
    }
    return inputs;
  }
  static Tensor in_double(const Tensor& tensor) {
    const Tensor copy = copy_of(tensor);
    if (copy.is_complex()) return copy.to(kComplex128);
    return copy.is_floating_point() ? copy.to(kFloat64) : copy;
  }
  // Calls the operator with these in the place of those that require gradients; what it writes are copies.
  Tensors differentiable_results(const Tensors& inputs) const {
    size_t next = 0;
    Stack given;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const bool written = schema_.arguments[i].is_written;
      given.push_back(map_value(arguments_[i], [&](const Tensor& tensor) {
        if (!tensor.requires_grad()) return in_double(tensor);
        const Tensor& input = inputs[next++];
        return written ? input.clone() : input;
      }));
    }
    Tensors results;
    for (const Value& value : typed_(std::move(given))) {
      for (const Tensor& tensor : defined_tensors(value)) {
        if (tensor.is_floating_point() || tensor.is_complex()) results.push_back(tensor);
      }
    }
    return results;
  }

  void derivative() {
    const EnableGradGuard recording;
    const Tensors inputs = wanted();
    if (inputs.empty()) return left_out("the derivative: no argument requires a gradient");
    if (!op_.has_kernel(DispatchKey::Autograd)) {
      return problem("an argument requires a gradient, and there is no derivative: register_autograd gives one");
    }
    Tensors results;
    try {
      results = differentiable_results(inputs);
    } catch (const std::exception& error) {
      return left_out("the derivative: the call with float64 copies throws: ", error.what());
    }
    if (std::none_of(results.begin(), results.end(), [](const Tensor& each) { return each.requires_grad(); })) {
      return problem("an argument requires a gradient, and no result does");
    }
    try {
      autograd::gradcheck([&](const Tensors& given) { return differentiable_results(given); }, inputs,
                          options_.gradcheck);
    } catch (const std::exception& error) {
      problem("the derivative is wrong: ", error.what());
    }
  }

  void devices() {
    const DeviceType here = device_of_arguments();
    for (int i = 0; i < kNumDeviceTypes; ++i) {
      const auto type = static_cast<DeviceType>(i);
      if (type != here && type != kMeta && is_available(type)) compare_on(type);
    }
  }
  DeviceType device_of_arguments() const {
    for (const Value& value : arguments_) {
      for (const Tensor& tensor : defined_tensors(value)) {
        if (!tensor.device().is_cpu()) return tensor.device().type;
      }
    }
    return kCPU;
  }
  void compare_on(DeviceType type) {
    const NoGradGuard no_grad;
    try {
      const Stack results =
          typed_(map_tensors(arguments_, [&](const Tensor& t) { return copy_of(t).to(Device(type)); }));
      if (!same(results_, results, options_.rtol, options_.atol)) {
        problem("the results on ", device_type_name(type), " differ from those on ",
                device_type_name(device_of_arguments()));
      }
    } catch (const NotImplementedError& error) {
      left_out("the results on ", device_type_name(type), ": ", error.msg());
    } catch (const std::exception& error) {
      problem("the call with tensors on ", device_type_name(type), " throws: ", error.what());
    }
  }

  const OpBase& op_;
  const Schema schema_;
  const StackCall& typed_;
  const Stack arguments_;
  const OpcheckOptions& options_;
  Stack used_, results_;  // of the first call
  OpcheckReport report_;
};

}  // namespace

OpcheckReport check_operator(const OpBase& op, const Signature& signature, const StackCall& typed, Stack arguments,
                             const OpcheckOptions& options) {
  check_signature(op, signature);
  return Check(op, typed, std::move(arguments), options).run();
}

void require_none(const OpBase& op, const OpcheckReport& report) {
  if (report.problems.empty()) return;
  std::string text;
  for (size_t i = 0; i < report.problems.size(); ++i)
    text += str(i == 0 ? "" : "; ", "(", i + 1, ") ", report.problems[i]);
  RUSH_THROW(Error, op.name(), ": opcheck: ", text);
}

}  // namespace rush::library::detail
