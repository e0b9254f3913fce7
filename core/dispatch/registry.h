// The list of all operators, and how kernels get into them.
#pragma once
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/dispatch/boxed.h"
#include "core/dispatch/op.h"

namespace rush {

// Note [Explicit registration]
// `initialize` calls register_ops, register_cpu, register_autograd, ... once, in that order: ordinary functions that
// anyone can step into. There are no static initialisers, so the linker drops nothing and nothing runs before main.
class Registry {
 public:
  using Where = SourceLocation;

  // The front of an operator: the same function on every backend, see Note [Fronts and kernels]. Also lists the
  // operator.
  template <class Sig>
  void native(Op<Sig>& op, std::type_identity_t<Sig>* front, Where where = Where::current()) {
    add(op);
    set(op, DispatchKey::Dense, front, where);
  }
  // An operator made of calls to other operators: it needs no derivative, so it serves the Autograd key as well, and
  // the sparse one, for which those that it calls may have no kernel.
  template <class Sig>
  void composite(Op<Sig>& op, std::type_identity_t<Sig>* body, Where where = Where::current()) {
    native(op, body, where);
    sparse(op, body, where);
    set(op, DispatchKey::Autograd, body, where);
  }
  // The front of an operator for sparse tensors, beside or instead of that for dense ones. Also lists the operator.
  template <class Sig>
  void sparse(Op<Sig>& op, std::type_identity_t<Sig>* front, Where where = Where::current()) {
    add(op);
    set(op, DispatchKey::Sparse, front, where);
  }
  // A kernel for one key of an operator that is already listed.
  template <class Sig>
  void kernel(Op<Sig>& op, DispatchKey key, std::type_identity_t<Sig>* fn, Where where = Where::current()) {
    set(op, key, fn, where);
  }

  // A key that nobody uses yet, for calls to stop at before autocast and autograd; a call carries it under
  // IncludeDispatchKeyGuard(key). It is the caller's until the process ends, and `name` must live as long. Throws
  // ValueError if none is left.
  DispatchKey take_key(const char* name);
  // Has `fn` serve `key` for all operators that have no kernel for it, see Note [Fallbacks]. Not while other threads
  // call operators. Throws ValueError if `fn` is null.
  void fallback(DispatchKey key, BoxedFallback fn, Where where = Where::current());
  // Calls of `op` pass by the key's fallback, until another one is set. Throws ValueError if the key has none, or `op`
  // a kernel for it.
  void fallthrough(OpBase& op, DispatchKey key);
  // Null when the key has none.
  BoxedFallback fallback_of(DispatchKey key) const { return fallbacks_[static_cast<int>(key)].fn; }

  // Null when there is none of that name ("aten::add.Tensor").
  const OpBase* find(std::string_view name) const;
  const std::map<std::string_view, OpBase*>& operators() const { return by_name_; }

 private:
  template <class Sig>
  void add(Op<Sig>& op) {
    static_cast<void>(&Op<Sig>::operator());  // compiled here, for all who call it
    op.boxed_ = detail::BoxedCall<Sig>::function;
    op.through_fallback_ = reinterpret_cast<OpBase::AnyFn>(detail::BoxedCall<Sig>::through_fallback);
    op.careful_ = reinterpret_cast<OpBase::AnyFn>(&Op<Sig>::call_with_care);
    op.report_undefined_ = reinterpret_cast<OpBase::AnyFn>(&Op<Sig>::report_undefined);
    list(op);
  }
  // Also claims the keys that every operator claims.
  void list(OpBase& op);
  template <class Fn>
  void set(OpBase& op, DispatchKey key, Fn* fn, Where where) {
    const int slot = static_cast<int>(key);
    op.table_[slot] = reinterpret_cast<OpBase::AnyFn>(fn);
    op.registered_at_[slot] = where;
    op.mask_ |= key;
  }

  // The operator claims the key of a fallback.
  void claim(OpBase& op, int slot);

  struct Fallback {
    BoxedFallback fn = nullptr;
    Where where;
  };
  std::map<std::string_view, OpBase*> by_name_;
  Fallback fallbacks_[kNumDispatchKeys];
  std::mutex taking_;
  KeySet taken_;
};

// Fills the registry on the first call, from any thread; later calls return at once. Called by the first operator.
Registry& registry();

// Defined beside the rooms' registration functions: calls them in order.
void register_all(Registry& registry);

}  // namespace rush
