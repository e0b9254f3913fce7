#include "core/dispatch/op.h"

#include "core/device/backend.h"
#include "core/dispatch/boxed.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value.h"

namespace rush {

namespace {
// The call that was resolved last, for the functions that `resolve` returns: they are given its arguments alone.
constinit thread_local const OpBase* resolved_op = nullptr;
constinit thread_local KeySet resolved_keys;
constinit thread_local BoxedFallback resolved_fallback = nullptr;

}  // namespace

OpBase::AnyFn OpBase::resolve(KeySet keys) const {
  const bool is_first_call = mask_.empty();
  registry();
  if (is_first_call) keys |= watching;  // which was not known when they were gathered
  const DispatchKey key = served_by(keys);
  resolved_op = this;
  resolved_keys = keys;
  if (key == DispatchKey::UndefinedTensor) return report_undefined_;
  if (AnyFn fn = table_[static_cast<int>(key)]) return fn;
  resolved_fallback = registry().fallback_of(key);
  if (resolved_fallback) return through_fallback_;
  throw_no_kernel(keys);
}

void OpBase::throw_no_kernel(KeySet keys) const {
  RUSH_CHECK_NOT_IMPLEMENTED(boxed_, name(), ": is not registered, as add_operators does with a program's operators");
  RUSH_CHECK_NOT_IMPLEMENTED(!keys.has(DispatchKey::Sparse), name(),
                             ": not implemented for sparse tensors (no kernel for ", keys,
                             "); to_dense() makes a dense tensor of one");
  KeySet served;
  for (int i = 1; i < kNumDispatchKeys; ++i) {
    if (table_[i]) served |= static_cast<DispatchKey>(i);
  }
  RUSH_THROW(NotImplementedError, name(), ": no kernel for keys ", keys, ", it has ", served);
}

void OpBase::call_boxed(Stack& stack, KeySet without) const {
  registry();
  RUSH_INTERNAL_ASSERT(boxed_, name(), " is not registered");
  boxed_(*this, without, stack);
}

namespace detail {

FallbackCall::FallbackCall() : op_(*resolved_op), keys_(resolved_keys), fallback_(resolved_fallback) {
  stack_.reserve(8);  // most operators' arguments
}
FallbackCall::~FallbackCall() = default;
void FallbackCall::run() { fallback_(op_, keys_, stack_); }

void throw_inference_written(std::string_view op) {
  RUSH_THROW(Error, short_name(op),
             ": Inplace update to inference tensor outside InferenceMode is not allowed; write a clone() of it");
}

void throw_undefined(size_t position) {
  const Schema schema = Schema::parse(resolved_op->schema());
  const bool is_list = schema.arguments[position].type.ends_with("[]");
  RUSH_THROW(ValueError, short_name(resolved_op->name()),
             ": Expected a proper Tensor but got None (or an undefined Tensor in C++) ", is_list ? "in the list " : "",
             "for argument #", position, " '", schema.arguments[position].name,
             "': one that was never assigned, was moved from, or is a gradient that no backward pass has computed");
}

void CallDevice::see_tensor(const TensorImpl& tensor) {
  const Device device = tensor.device();
  if (device.is_cpu()) {
    cpu_tensor_ = cpu_tensor_ || tensor.dim() > 0;
  } else if (device.is_accelerator()) {
    if (!device_) device_ = device;
    if (device != *device_) other_ = device;
    const bool has_memory = tensor.layout() == kStrided;  // the parts of a sparse one are given to operators in turn
    if (note_tensor_use && has_memory && !op_.is_view()) note_tensor_use(tensor, op_);
  }
}

void CallDevice::wait() { backend_of(type_).synchronize(backend_of(type_).current_device()); }

void CallDevice::enter(DeviceType type) {
  entered_ = true;
  type_ = type;
  const std::optional<Device> device = asked_ ? asked_ : device_;
  if (!device) return;  // a factory on the current device
  if ((cpu_tensor_ || other_) && !is_factory_ && !op_.has_tag(Tag::AnyDevice)) {
    RUSH_THROW(ValueError, op_.name(), ": its tensors are on different devices, ", *device_, " and ",
               other_.value_or(kCPU));
  }
  if (!devices_to_check.has(type)) return;  // there is but one
  Backend& backend = backend_of(type);
  const int current = backend.current_device();
  if (current == device->index) return;
  backend.set_device(concrete_device(*device).index);
  previous_ = current;
}

void CallDevice::leave() noexcept {
  try {
    backend_of(type_).set_device(previous_);
  } catch (const Error&) {
    // It was current before: the driver is shutting down.
  }
}

}  // namespace detail

}  // namespace rush
