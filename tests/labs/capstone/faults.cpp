// Runs a capstone's tests with a fault. The test program is linked again with --wrap for its main function and for the
// fused kernel, so that both calls come here. RUSH_CAPSTONE_FAULT names the fault. A fault of the operator is planted
// by a dispatch key of its own: every call of the operator stops at it, and goes on with other arguments, or comes back
// with another result.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "autograd/hooks.h"
#include "core/dispatch/boxed.h"
#include "core/dispatch/schema.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "tests/labs/capstone/include/capstone.h"

extern "C" {
int __real_main(int argc, char** argv);
int __wrap_main(int argc, char** argv);
void __real__ZN8capstone5fusedEPKPKffPfll(const float* const*, float, float*, int64_t, int64_t);
void __wrap__ZN8capstone5fusedEPKPKffPfll(const float* const*, float, float*, int64_t, int64_t);
}

namespace capstone {

using namespace rush;

namespace {

DispatchKey fault_key;

// How a faulty operator calls the right one.
struct Call {
  const OpBase& op;
  Stack stack;  // its arguments

  size_t tensors() const { return stack.size() - 1; }
  Tensor make() const {
    Stack own = stack;
    op.call_boxed(own, fault_key);
    return own[0].as<Tensor>();
  }
  double default_number() const { return Schema::parse(op.schema()).arguments.back().default_value->as<double>(); }
};

Tensor with_last_element_off(const Tensor& right) {
  if (right.numel() == 0) return right;
  const Tensor off = zeros({right.numel()}, right.options());
  off.narrow(0, right.numel() - 1, 1).fill_(1);
  return right + off.view(right.sizes());
}

Tensor value(Call call) { return with_last_element_off(call.make()); }

Tensor number(Call call) {
  call.stack.back() = call.default_number();
  return call.make();
}

Tensor strides(Call call) {
  for (size_t i = 0; i < call.tensors(); ++i) {
    if (!call.stack[i].as<Tensor>().is_contiguous()) return with_last_element_off(call.make());
  }
  return call.make();
}

Tensor bfloat16(Call call) {
  const Tensor right = call.make();
  return right.scalar_type() == kBFloat16 ? right * 1.1 : right;
}

Tensor empty_result(Call call) {
  Tensor right = call.make();
  RUSH_CHECK(right.numel() > 0, "an empty tensor");
  return right;
}

Tensor errors(Call call) {
  try {
    return call.make();
  } catch (const Error&) {
    return call.stack[0].as<Tensor>().clone();
  }
}

// Has a tensor argument's gradient pass by the hook.
template <class Hook>
void hook_gradient(Value& value, const Hook& hook) {
  const Tensor argument = value.as<Tensor>();
  if (!argument.requires_grad()) return;
  const Tensor alias = argument.view(argument.sizes());
  alias.register_hook(hook);
  value = alias;
}

// The last tensor's gradient has an error of a tenth.
Tensor gradient(Call call) {
  hook_gradient(call.stack[call.tensors() - 1], [](const Tensor& g) { return g * 1.1; });
  return call.make();
}

// The gradients are constants, which have no derivative.
Tensor second_gradient(Call call) {
  for (size_t i = 0; i < call.tensors(); ++i) {
    hook_gradient(call.stack[i], [](const Tensor& g) { return g.detach(); });
  }
  return call.make();
}

struct Fault {
  const char* name;
  Tensor (*call)(Call call);
};
constexpr Fault kFaults[] = {
    {"value", value},        {"number", number}, {"strides", strides},   {"bfloat16", bfloat16},
    {"empty", empty_result}, {"errors", errors}, {"gradient", gradient}, {"second_gradient", second_gradient},
    {"fused", nullptr},
};

const Fault* fault = nullptr;

void at_fault_key(const OpBase& op, KeySet, Stack& stack) {
  if (op.name() != subject().name) return op.call_boxed(stack, fault_key);
  stack = {fault->call({op, stack})};
}

int run_with_fault(const std::string& name, int argc, char** argv) {
  for (const Fault& each : kFaults) {
    if (name == each.name) fault = &each;
  }
  if (!fault) return __real_main(argc, argv);
  fault_key = registry().take_key("Fault");
  registry().fallback(fault_key, at_fault_key);
  const IncludeDispatchKeyGuard planted{fault->call ? KeySet(fault_key) : KeySet()};
  return __real_main(argc, argv);
}

}  // namespace

}  // namespace capstone

int __wrap_main(int argc, char** argv) {
  const char* name = std::getenv("RUSH_CAPSTONE_FAULT");
  return capstone::run_with_fault(name ? name : "", argc, argv);
}

// With the fault, the last element is left as it was.
void __wrap__ZN8capstone5fusedEPKPKffPfll(const float* const* inputs, float number, float* out, int64_t rows,
                                          int64_t columns) {
  float& last = out[rows * columns - 1];
  const float before = last;
  __real__ZN8capstone5fusedEPKPKffPfll(inputs, number, out, rows, columns);
  if (capstone::fault && std::string(capstone::fault->name) == "fused") last = before;
}
