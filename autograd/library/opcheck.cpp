#include "autograd/library/opcheck.h"

#include <algorithm>
#include <functional>
#include <span>

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

// Of arguments or results, in order.
Tensors defined_tensors(std::span<const Value> values) {
  Tensors all;
  for (const Value& value : values) {
    std::ranges::copy_if(tensors_of(value), std::back_inserter(all), [](const Tensor& t) { return t.defined(); });
  }
  return all;
}
Tensors defined_tensors(const Value& value) { return defined_tensors(std::span(&value, 1)); }

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

Tensor in_double(const Tensor& tensor) {
  const Tensor copy = copy_of(tensor);
  if (copy.is_complex()) return copy.to(kComplex128);
  return copy.is_floating_point() ? copy.to(kFloat64) : copy;
}

Tensor without_data(const Tensor& tensor) {
  return empty_strided(tensor.sizes(), tensor.strides(), TensorOptions(tensor.scalar_type()).device(kMeta));
}

// Integers and booleans are close where they are equal, and NaN is close to NaN.
bool is_close(const Tensor& a, const Tensor& b, double rtol, double atol) {
  const bool is_exact = !is_differentiable(a.scalar_type());
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         allclose(in_double(a).cpu(), in_double(b).cpu(), is_exact ? 0 : rtol, is_exact ? 0 : atol, true);
}

bool are_close(std::span<const Value> a, std::span<const Value> b, double rtol, double atol) {
  return std::ranges::equal(defined_tensors(a), defined_tensors(b),
                            [&](const Tensor& x, const Tensor& y) { return is_close(x, y, rtol, atol); });
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
  Check(const OpBase& op, Stack arguments, const OpcheckOptions& options)
      : op_(op), schema_(Schema::parse(op.schema())), arguments_(std::move(arguments)), options_(options) {}

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

  // Whether `step` returns; what it throws is told in `lines`.
  static bool attempt(std::vector<std::string>& lines, const char* what, const std::function<void()>& step) {
    try {
      step();
      return true;
    } catch (const std::exception& error) {
      lines.push_back(str(what, " throws: ", error.what()));
      return false;
    }
  }

  std::string argument(size_t i) const { return str("argument #", i, " '", schema_.arguments[i].name, "'"); }
  Stack copies() const { return map_tensors(arguments_, copy_of); }
  // The results.
  Stack call(Stack arguments) const {
    op_.call_boxed(arguments);
    return arguments;
  }

  // The call that the next checks look at.
  bool call_without_recording() {
    const NoGradGuard no_grad;
    used_ = copies();
    return attempt(report_.problems, "the call", [&] { results_ = call(used_); });
  }

  void writes() {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const bool is_unchanged = are_close(std::span(&arguments_[i], 1), std::span(&used_[i], 1), 0, 0);
      if (schema_.arguments[i].is_written || is_unchanged) continue;
      problem("the call writes ", argument(i), ", and the schema does not say so: Tensor(a!) ",
              schema_.arguments[i].name);
    }
  }

  void sharing() {
    for (size_t r = 0; r < results_.size(); ++r) {
      for (size_t s = 0; s < r; ++s) {
        const bool is_said =
            !schema_.return_aliases[r].empty() && schema_.return_aliases[r] == schema_.return_aliases[s];
        if (!is_said && share_memory(results_[r], results_[s])) {
          problem("results #", s, " and #", r, " share memory, and the schema does not say so: return a copy");
        }
      }
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
    const DispatchStateGuard restored;
    dispatch_state.default_device = kMeta;  // where no argument is on it
    Stack given = map_tensors(arguments_, without_data), results;
    for (Value& value : given) {
      if (value.is<Device>()) value = Device(kMeta);
    }
    if (!attempt(report_.problems, "the meta function", [&] { results = call(given); })) return;
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
  static Tensor in_reverse(const Tensor& tensor) { return copy_of(tensor).numpy_T().contiguous().numpy_T(); }
  void strides() {
    const NoGradGuard no_grad;
    Stack results;
    const auto run = [&] { results = call(map_tensors(arguments_, in_reverse)); };
    if (!attempt(report_.left_out, "the call with other strides", run)) return;
    if (!are_close(results_, results, options_.rtol, options_.atol))
      problem("the results are others when the arguments have other strides: the kernel ignores them");
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
    Stack results;
    const auto run = [&] { results = call_operator(op_.name(), {}, named); };
    if (!attempt(report_.problems, "a call by name", run)) return false;
    const bool is_same = are_close(results_, results, 0, 0);
    if (!is_same) problem("a call by name gives other results than the call before");
    return is_same;
  }

  // The arguments' tensors that require gradients, as float64.
  Tensors wanted() const {
    Tensors inputs;
    for (const Tensor& tensor : defined_tensors(arguments_)) {
      if (tensor.requires_grad()) inputs.push_back(in_double(tensor).requires_grad_());
    }
    return inputs;
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
    Tensors results = defined_tensors(call(std::move(given)));
    std::erase_if(results, [](const Tensor& each) { return !is_differentiable(each.scalar_type()); });
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
    const auto run = [&] { results = differentiable_results(inputs); };
    if (!attempt(report_.left_out, "the derivative: the call with float64 copies", run)) return;
    if (std::none_of(results.begin(), results.end(), [](const Tensor& each) { return each.requires_grad(); })) {
      return problem("an argument requires a gradient, and no result does");
    }
    const auto again = [&](const Tensors& given) { return differentiable_results(given); };
    attempt(report_.problems, "the derivative is wrong: gradcheck",
            [&] { autograd::gradcheck(again, inputs, options_.gradcheck); });
  }

  void devices() {
    const DeviceType here = device_of_arguments();
    for (int i = 0; i < kNumDeviceTypes; ++i) {
      const auto type = static_cast<DeviceType>(i);
      if (type != here && type != kMeta && is_available(type)) compare_on(type);
    }
  }
  DeviceType device_of_arguments() const {
    for (const Tensor& tensor : defined_tensors(arguments_)) {
      if (!tensor.device().is_cpu()) return tensor.device().type;
    }
    return kCPU;
  }
  void compare_on(DeviceType type) {
    const NoGradGuard no_grad;
    try {
      const Stack results = call(map_tensors(arguments_, [&](const Tensor& t) { return copy_of(t).to(Device(type)); }));
      if (!are_close(results_, results, options_.rtol, options_.atol)) {
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
  const Stack arguments_;
  const OpcheckOptions& options_;
  Stack used_, results_;  // of the first call
  OpcheckReport report_;
};

}  // namespace

OpcheckReport check_operator(const OpBase& op, const Signature& signature, Stack arguments,
                             const OpcheckOptions& options) {
  check_signature(op, signature);
  return Check(op, std::move(arguments), options).run();
}

void require_none(const OpBase& op, const OpcheckReport& report) {
  if (report.problems.empty()) return;
  std::string text;
  for (size_t i = 0; i < report.problems.size(); ++i)
    text += str(i == 0 ? "" : "; ", "(", i + 1, ") ", report.problems[i]);
  RUSH_THROW(Error, op.name(), ": opcheck: ", text);
}

}  // namespace rush::library::detail
