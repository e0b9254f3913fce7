#include "core/dispatch/op.h"

#include <cstdio>

#include "core/device/device_runtime.h"
#include "core/dispatch/boxed.h"
#include "core/dispatch/call_ranges.h"
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
  registry();
  const DispatchKey key = (keys & mask_).highest();
  resolved_op = this;
  resolved_keys = keys;
  if (key == DispatchKey::UndefinedTensor) return report_undefined_;
  if (AnyFn fn = table_[static_cast<int>(key)]) return fn;
  resolved_fallback = registry().fallback_of(key);
  if (resolved_fallback) return through_fallback_;
  throw_no_kernel(keys);
}

void OpBase::throw_no_kernel(KeySet keys) const {
  RUSH_CHECK_NOT_IMPLEMENTED((keys & kSparseKeys).empty(), name_,
                             ": not implemented for sparse tensors (no kernel for ", keys,
                             "); to_dense() makes a dense tensor of one");
  KeySet served;
  for (int i = 1; i < kNumDispatchKeys; ++i) {
    if (table_[i]) served |= static_cast<DispatchKey>(i);
  }
  RUSH_THROW(NotImplementedError, name_, ": no kernel for keys ", keys, ", it has ", served);
}

void OpBase::call_boxed(Stack& stack, KeySet without) const {
  registry();
  RUSH_INTERNAL_ASSERT(boxed_, name_, " is not registered");
  boxed_(*this, without, stack);
}

void OpBase::trace(KeySet keys, DispatchKey key) const {
  const SourceLocation& where = registered_at_[static_cast<int>(key)];
  std::fprintf(stderr, "%*s%.*s -> %s  (keys %s; registered at %s:%u)\n", 2 * (dispatch_state.depth - 1), "",
               static_cast<int>(name_.size()), name_.data(), rush::name(key), str(keys).c_str(), where.file_name(),
               static_cast<unsigned>(where.line()));
}

namespace detail {

FallbackCall::FallbackCall()
    : op_(*resolved_op), keys_(resolved_keys), fallback_(resolved_fallback), stack_(new Stack) {}
FallbackCall::~FallbackCall() { delete stack_; }
void FallbackCall::run() { fallback_(op_, keys_, *stack_); }

void throw_undefined(size_t position) {
  const Schema schema = Schema::parse(resolved_op->schema());
  const bool is_list = schema.arguments[position].type.ends_with("[]");
  RUSH_THROW(
      ValueError, short_name(resolved_op->name()), ": argument '", schema.arguments[position].name, "' (position ",
      position + 1, is_list ? ") has" : ") is",
      " an undefined tensor: one that was never assigned, was moved from, or is a gradient that no backward pass "
      "has computed");
}

void CallDevice::see_tensor(const TensorImpl& tensor) {
  const Device device = tensor.device();
  if (device.is_cpu()) {
    cpu_tensor_ = cpu_tensor_ || tensor.dim() > 0;
  } else if (device.is_cuda()) {
    if (device_ < 0) device_ = device.index;
    if (device.index != device_) other_ = device.index;
    const bool has_memory = tensor.layout() == kStrided;  // the parts of a sparse one are given to operators in turn
    if (note_tensor_use && has_memory && !op_.is_view()) note_tensor_use(tensor, op_);
  }
}

void CallDevice::wait() { device_runtime(kCUDA).synchronize(device_runtime(kCUDA).current_device()); }

void CallDevice::enter() {
  entered_ = true;
  const int device = asked_ >= 0 ? asked_ : device_;
  if (device < 0 && !call_ranges.begin) return;  // a factory on the current device
  if (device >= 0 && (cpu_tensor_ || other_ >= 0) && !is_factory_ && !op_.has_tag(Tag::AnyDevice)) {
    RUSH_THROW(ValueError, op_.name(), ": its tensors are on different devices, ", Device(kCUDA, device_), " and ",
               other_ >= 0 ? Device(kCUDA, other_) : Device(kCPU));
  }
  if (!devices_to_check.has(DispatchKey::CUDA)) return;  // there is but one
  DeviceRuntime& runtime = device_runtime(kCUDA);
  const int current = runtime.current_device();
  if (call_ranges.begin) {
    call_ranges.begin(op_.name());
    previous_ = current;  // leave() ends the range
  }
  if (device < 0 || current == device) return;
  runtime.set_device(concrete_device(Device(kCUDA, device)).index);
  previous_ = current;
}

void CallDevice::leave() noexcept {
  if (call_ranges.end) call_ranges.end();
  try {
    device_runtime(kCUDA).set_device(previous_);
  } catch (const Error&) {
    // It was current before: the driver is shutting down.
  }
}

}  // namespace detail

}  // namespace rush
