// An operator's call is compiled where the operator is registered. So tools/lab compiles this file with the learner's
// op_call.h, and links it first: the linker keeps the first definition of what several objects have, and the library's
// calls of the same signatures go through the learner's file as well.
#include "tests/labs/probe_operators.h"

#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"

namespace rush {

// Further ones of a training step.
template class Op<Tensor(const Tensor&)>;
template class Op<Tensor(const Tensor&, int64_t, int64_t)>;
template class Op<Tensor(const Tensor&, IntArrayRef)>;
template class Op<Tensor(const Tensor&, MemoryFormat)>;
template class Op<Tensor&(Tensor&, const Tensor&, const Scalar&)>;
template class Op<Tensor(IntArrayRef, const Scalar&, RUSH_FACTORY_ARGS)>;
template class Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS, std::optional<MemoryFormat>)>;

namespace labs {

std::string stopped_at;

namespace {

void note(const std::string& stop) { stopped_at += (stopped_at.empty() ? "" : ", then ") + stop; }

template <DispatchKey key, class Signature>
struct Probe;
template <DispatchKey key, class... Args>
struct Probe<key, Tensor(Args...)> {
  static Tensor run(Args...) {
    note(name(key));
    return {};
  }
};
template <DispatchKey key, class... Args>
struct Probe<key, Tensor&(Tensor&, Args...)> {
  static Tensor& run(Tensor& self, Args...) {
    note(name(key));
    return self;
  }
};

template <DispatchKey key>
void note_fallback(const OpBase&, KeySet keys, Stack& stack) {
  note(str("the fallback of ", name(key), ", given ", keys));
  stack.clear();
  stack.push_back(Tensor());
}

template <class Signature>
void add_kernels(Registry& registry, Op<Signature>& op) {
  registry.native(op, Probe<DispatchKey::Dense, Signature>::run);
  registry.kernel(op, DispatchKey::Autograd, Probe<DispatchKey::Autograd, Signature>::run);
  registry.kernel(op, DispatchKey::Free2, Probe<DispatchKey::Free2, Signature>::run);
}

template <class Signature>
void add_front(Registry& registry, Op<Signature>& op) {
  registry.native(op, Probe<DispatchKey::Dense, Signature>::run);
}

}  // namespace

void register_probe_operators() {
  Registry& all = registry();
  add_kernels(all, two);
  add_kernels(all, maybe);
  add_kernels(all, list);
  add_kernels(all, write_);
  add_front(all, passing);
  add_front(all, make);
  all.fallback(DispatchKey::Free1, note_fallback<DispatchKey::Free1>);
  all.fallback(DispatchKey::Free2, note_fallback<DispatchKey::Free2>);
  all.fallthrough(passing, DispatchKey::Free1);
}

template <class T>
KeySet keys_of_argument(const T& argument) {
  return detail::keys_of(argument);
}
template <class T>
KeySet key_of_device(const T& argument) {
  return detail::device_key(argument);
}
template KeySet keys_of_argument(const Tensor&);
template KeySet keys_of_argument(const std::optional<Tensor>&);
template KeySet keys_of_argument(const TensorList&);
template KeySet keys_of_argument(const OptionalTensorList&);
template KeySet keys_of_argument(const int64_t&);
template KeySet key_of_device(const Tensor&);
template KeySet key_of_device(const std::optional<Device>&);

}  // namespace labs
}  // namespace rush
