// Op: one operator. It holds its schema and a kernel per dispatch key, and its call picks one and jumps.
#pragma once
#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dispatch/key.h"
#include "core/error.h"
#include "core/source_location.h"
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

// What an operator is apart from its signature.
class OpBase {
 public:
  constexpr explicit OpBase(const char* schema) : schema_(schema) {
    const std::string_view text(schema);
    name_ = text.substr(0, text.find('('));
    const size_t alias = text.find("Tensor(a");
    // "(a)" or "(a -> *)" is a view of the argument; "(a!)" is written.
    is_view_ = alias != text.npos && text[alias + 8] != '!';
  }
  OpBase(const OpBase&) = delete;

  // "aten::add.Tensor"
  std::string_view name() const { return name_; }
  // "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* schema() const { return schema_; }
  // Whether the result shares memory with the first argument.
  constexpr bool is_view() const { return is_view_; }
  // Whether a kernel of its own serves `key`.
  bool has_kernel(DispatchKey key) const { return mask_.has(key); }
  // Where the kernel for `key` was registered; line 0 when there is none.
  SourceLocation registered_at(DispatchKey key) const { return registered_at_[static_cast<int>(key)]; }
  // Calls the operator on a stack: takes its arguments off the end, in the schema's order, and pushes its results.
  void call_boxed(Stack& stack) const;

 protected:
  friend class Registry;
  using AnyFn = void (*)();

  // The slow end of a call: initialises the library once, or throws. Returns the kernel.
  AnyFn resolve(KeySet keys) const;
  void trace(KeySet keys, DispatchKey key) const;

  const char* schema_;
  std::string_view name_;
  bool is_view_ = false;
  KeySet mask_;
  AnyFn table_[kNumDispatchKeys] = {};
  void (*boxed_)(const OpBase&, Stack&) = nullptr;
  SourceLocation registered_at_[kNumDispatchKeys] = {};
};

// Set by RUSH_SHOW_DISPATCH=1: every call prints its operator and where it goes, indented by depth.
inline constinit bool show_dispatch = false;

namespace detail {

inline KeySet keys_of(const Tensor& t) { return t.defined() ? t.impl()->keys() : KeySet(); }
inline KeySet keys_of(const std::optional<Tensor>& t) { return t ? keys_of(*t) : KeySet(); }
inline KeySet keys_of(TensorList list) {
  KeySet keys;
  for (const Tensor& t : list) keys |= keys_of(t);
  return keys;
}
inline KeySet keys_of(OptionalTensorList list) {
  KeySet keys;
  for (const auto& t : list) keys |= keys_of(t);
  return keys;
}
template <class T>
KeySet keys_of(const T&) {
  return {};
}

template <class T>
inline constexpr bool is_written = std::is_same_v<T, Tensor&>;

template <class T>
void bump_if_written(T&& arg) {
  if constexpr (std::is_same_v<T, Tensor&>) arg.bump_version();
}

// A factory has no tensor argument; its device argument says where to go.
inline KeySet factory_key(const std::optional<Device>& device) { return backend_key(device.value_or(Device()).type); }
template <class T>
KeySet factory_key(const T&) {
  return {};
}

}  // namespace detail

template <class Signature>
class Op;

template <class R, class... Args>
class Op<R(Args...)> : public OpBase {
 public:
  using Fn = R (*)(Args...);
  static constexpr bool is_inplace = (detail::is_written<Args> || ...);

  constexpr explicit Op(const char* schema) : OpBase(schema) {}

  R operator()(Args... args) const {
    KeySet keys = dispatch_keys(args...);
    const DispatchKey key = (keys & mask_).highest();
    Fn fn = reinterpret_cast<Fn>(table_[static_cast<int>(key)]);
    if (RUSH_UNLIKELY(!fn)) fn = reinterpret_cast<Fn>(resolve(keys));
    if (RUSH_UNLIKELY(show_dispatch)) return traced(keys, fn, std::forward<Args>(args)...);
    if constexpr (is_inplace) {
      R result = fn(std::forward<Args>(args)...);
      if (key < DispatchKey::Autograd) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
      return result;
    } else {
      return fn(std::forward<Args>(args)...);
    }
  }

 private:
  friend class Registry;

  static KeySet dispatch_keys(const std::remove_reference_t<Args>&... args) {
    KeySet keys = (KeySet() | ... | detail::keys_of(args));
    if (keys.empty()) keys = factory_keys(args...);
    return (keys | dispatch_state.included).without(dispatch_state.excluded);
  }
  static KeySet factory_keys(const std::remove_reference_t<Args>&... args) {
    const KeySet keys = (KeySet() | ... | detail::factory_key(args));
    return keys.empty() ? KeySet(DispatchKey::CPU) : keys;
  }

  RUSH_COLD RUSH_NOINLINE R traced(KeySet keys, Fn fn, Args... args) const {
    const DispatchKey key = (keys & mask_).highest();
    trace(keys, key);
    struct Depth {
      Depth() { ++dispatch_state.depth; }
      ~Depth() { --dispatch_state.depth; }
    } depth;
    if constexpr (is_inplace) {
      R result = fn(std::forward<Args>(args)...);
      if (key < DispatchKey::Autograd) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
      return result;
    } else {
      return fn(std::forward<Args>(args)...);
    }
  }
};

}  // namespace rush
