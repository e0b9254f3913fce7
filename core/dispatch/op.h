// Op: one operator. It holds its schema and a kernel per dispatch key, and its call picks one and jumps.
#pragma once
#include <atomic>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/dispatch/key.h"
#include "core/error/error.h"
#include "core/error/source_location.h"
#include "core/tensor.h"

namespace rush {

class Value;
class Registry;
using Stack = std::vector<Value>;

// Note [How a call finds its kernel]
// A call gathers the keys of its tensor arguments (TensorImpl::keys), adds and removes what the thread asks for
// (DispatchState), keeps those that the operator implements (`mask_`), takes the highest, and jumps through `table_`.
// Nothing is hashed or allocated. Slot 0 is always empty: a call that no key serves lands there, and `resolve` then
// fills the tables on the very first call of the process, or throws NotImplementedError.

// Note [Dense kernels and sparse tensors]
// A sparse tensor carries the key Sparse instead of Dense, but beside a dense tensor a call has both, and an operator
// without a sparse kernel must not serve it with its dense one. So every operator claims the key in its `mask_`; where
// it has no kernel for it the slot is empty, and the call ends in `resolve`, which says so.

// Note [Undefined arguments]
// An undefined tensor carries the highest key, UndefinedTensor, which operators claim in their `mask_` and no kernel
// serves: a call that is given one ends in `resolve`, which names the operator and the argument. An argument that may
// be left out is a std::optional; an undefined tensor in it stands for none.

// Note [Fallbacks]
// One function may serve a key for every operator: Registry::fallback makes all of them claim the key, and where one
// has no kernel of its own for it, `resolve` finds the fallback. What it then returns is compiled once for each
// signature, puts the arguments on a stack and calls the fallback with it. Calls that do not carry the key pay nothing.

// Note [The device of a call]
// A kernel launches on the current stream of the current device, so a call that a kernel of an accelerator serves makes
// its tensors' device current. With one GPU it always is; then such a call costs a comparison more, and one on the CPU
// nothing. Calls to look at more closely are those that `devices_to_check` has a device of: those with a CPU tensor
// beside the others, which only 0-dimensional ones and a few operators may have, and all where there are several GPUs.

// Note [Watching calls]
// What watches a whole program is a fallback of the key Trace or Profiler, which every call of every thread carries
// while it is in `watching`. These keys are above all others, and a call that goes on below autograd still carries them
// (KeySet::and_above): so their fallback sees each stop of the call, and OpBase::served_by tells it which one is next.
// One that is in `watching_once` as well sees the first alone, which spares the others from being boxed.
// RUSH_SHOW_DISPATCH=1 (core/dispatch/trace.h) prints the stops; Profiler is for profiles, which watch once, and for
// NVTX (core/profiler).
inline constinit KeySet watching;
inline constinit KeySet watching_once;

// See Note [The device of a call]. A backend adds its device type where there are several devices.
inline constinit KeySet devices_to_check = kCPU;
// Set by CUDA_LAUNCH_BLOCKING=1: every call waits for its kernels, so that what they report is thrown where they were
// called, not at the next synchronisation.
inline constinit bool wait_for_each_call = false;

// What a schema does not say of an operator.
enum class Tag : uint8_t {
  AnyDevice = 1,           // its tensors may lie on several devices: copies, what takes sizes or positions on the CPU
  TakesUndefined = 2,      // tensors may be undefined that ATen's schema does not call optional
  Collective = 4,          // it meets the same call of other processes
  DynamicOutputShape = 8,  // the sizes of its results may depend on the values of its tensors
};

// What serves a key for operators of any signature, see Registry::fallback. It is given the call's keys; it takes the
// arguments off the stack and pushes the results, as OpBase::call_boxed does.
using BoxedFallback = void (*)(const OpBase& op, KeySet keys, Stack& stack);

// What an operator is apart from its signature.
class OpBase {
 public:
  constexpr explicit OpBase(const char* schema, std::initializer_list<Tag> tags = {}) : schema_(schema) {
    while (schema[name_size_] != '(' && schema[name_size_] != '\0') ++name_size_;
    for (Tag tag : tags) tags_ |= static_cast<uint8_t>(tag);
  }
  OpBase(const OpBase&) = delete;

  // "aten::add.Tensor"
  std::string_view name() const { return {schema_, name_size_}; }
  // "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* schema() const { return schema_; }
  // Whether the result shares memory with the first argument. Known once it is registered.
  bool is_view() const { return is_view_; }
  constexpr bool has_tag(Tag tag) const { return (tags_ & static_cast<uint8_t>(tag)) != 0; }  // see Tag
  // Whether a kernel of its own serves `key`.
  bool has_kernel(DispatchKey key) const { return table_[static_cast<int>(key)] != nullptr; }
  // Whether it is made of calls to other operators, see Registry::composite.
  bool is_composite() const {
    const AnyFn body = table_[static_cast<int>(DispatchKey::Autograd)];
    return body && body == table_[static_cast<int>(DispatchKey::Dense)];
  }
  // Where the kernel for `key`, or the fallback, was registered; line 0 when there is neither.
  SourceLocation registered_at(DispatchKey key) const { return registered_at_[static_cast<int>(key)]; }
  // The key whose kernel or fallback serves a call with these keys; Undefined where none does.
  DispatchKey served_by(KeySet keys) const { return (keys & mask_).highest(); }
  // Calls the operator on a stack: takes its arguments off the end, in the schema's order, and pushes its results. The
  // call goes on below the keys `without`: so a key's fallback passes it on. What the operator calls in turn stops at
  // them again, but under a DispatchStateGuard of the key.
  void call_boxed(Stack& stack, KeySet without = {}) const;

 protected:
  friend class Registry;
  using AnyFn = void (*)();

  // The slow end of a call: initialises the library once, finds a fallback, or throws. Returns the kernel.
  AnyFn resolve(KeySet keys) const;
  [[noreturn]] void throw_no_kernel(KeySet keys) const;

  // The keys of a call's arguments, completed.
  static KeySet as_the_thread_asks(KeySet keys) {
    if (keys.empty()) keys = keys_on(dispatch_state.default_device.type);
    const KeySet watched = std::atomic_ref(watching).load(std::memory_order_relaxed);
    return (keys | watched | dispatch_state.included).without(dispatch_state.excluded);
  }
  // What a call that goes on below the keys `without` does not stop at.
  static KeySet left_behind(KeySet without) {
    if (without.empty()) return {};  // it comes from the top
    const bool passed_on_by_a_watcher = without.has_any(KeySet(DispatchKey::Trace) | DispatchKey::Profiler);
    const KeySet keys = without.and_above();
    return passed_on_by_a_watcher ? keys : keys | std::atomic_ref(watching_once).load(std::memory_order_relaxed);
  }
  bool needs_care(KeySet keys, DispatchKey key) const {
    if (RUSH_LIKELY(!keys.has_any(kAccelerators) || !is_backend_key(key))) return false;
    dispatch_state.device_op = this;
    return keys.has_any(devices_to_check);
  }

  const char* schema_;
  uint16_t name_size_ = 0;
  bool is_view_ = false;
  uint8_t tags_ = 0;
  KeySet mask_;
  AnyFn table_[kNumDispatchKeys] = {};
  void (*boxed_)(const OpBase&, KeySet without, Stack&) = nullptr;
  AnyFn careful_ = nullptr;
  AnyFn through_fallback_ = nullptr;
  AnyFn report_undefined_ = nullptr;
  SourceLocation registered_at_[kNumDispatchKeys] = {};
};

namespace detail {

template <class T>
inline constexpr bool is_written = std::is_same_v<T, Tensor&>;

// Set by a debug mode of a backend, which also adds its device type to devices_to_check: called for each tensor on an
// accelerator that an operator is given, except views, which do not touch its memory.
using TensorUse = void (*)(const TensorImpl& tensor, const OpBase& op);
inline constinit TensorUse note_tensor_use = nullptr;

}  // namespace detail

template <class Signature>
class Op;

// Its calls are defined in op_call.h and compiled once for each signature, where an operator of it is registered: else
// every program would compile the calls of all operators. `used` keeps them where that file has them inline.
template <class R, class... Args>
class Op<R(Args...)> : public OpBase {
 public:
  using Fn = R (*)(Args...);
  static constexpr bool is_inplace = (detail::is_written<Args> || ...);

  constexpr explicit Op(const char* schema, std::initializer_list<Tag> tags = {}) : OpBase(schema, tags) {}

  [[gnu::used]] R operator()(Args... args) const;

  // The call on its way below the keys: how a key's kernel passes on what it has done its part of. Keys that are higher
  // have had their turn. What the operator calls in turn stops at all of them again.
  [[gnu::used]] R call_without(KeySet without, Args... args) const;

 private:
  friend class Registry;

  using CarefulFn = R (*)(const Op&, KeySet, Fn, Args...);

  // What `resolve` gives a call with an undefined tensor: finds which argument it is.
  static R report_undefined(Args... args);
  // The call on the right device, see Note [The device of a call], through `careful_`.
  static R call_with_care(const Op& op, KeySet keys, Fn fn, Args... args);
};

}  // namespace rush
