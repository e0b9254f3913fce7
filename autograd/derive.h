// derive<op, Node>: makes the Autograd kernel of an operator from the struct that holds its derivative.
#pragma once
#include <array>
#include <tuple>

#include "autograd/debug/anomaly.h"
#include "autograd/inplace.h"
#include "autograd/saved.h"
#include "core/dispatch/registry.h"

namespace rush {

namespace detail {

inline bool wants_grad(const Tensor& t) { return t.requires_grad() && !t.is_inference(); }
inline bool wants_grad(const std::optional<Tensor>& t) { return t && wants_grad(*t); }
template <std::convertible_to<std::optional<Tensor>> T>
bool wants_grad(ArrayRef<T> list) {
  for (const T& t : list) {
    if (wants_grad(t)) return true;
  }
  return false;
}
template <class T>
bool wants_grad(const T&) {
  return false;
}

// Throws NotImplementedError, which names the operator and the argument.
[[noreturn]] void throw_no_gradient_by(const OpBase& op, size_t argument);

// Throws when one of the arguments of these numbers asks for a gradient.
template <class Numbers, class... Args>
void refuse_gradients(const OpBase& op, const Numbers& numbers, const Args&... args) {
  const bool wants[] = {wants_grad(args)...};
  for (const size_t number : numbers) {
    if (wants[number]) throw_no_gradient_by(op, number);
  }
}

// One edge for each tensor of the arguments, in order; tensors of a list count one by one.
inline void add_edges(Node& node, const Tensor& t) { node.add_next_edge(t.defined() ? gradient_edge(t) : Edge()); }
inline void add_edges(Node& node, const std::optional<Tensor>& t) { add_edges(node, t ? *t : Tensor()); }
template <std::convertible_to<std::optional<Tensor>> T>
void add_edges(Node& node, ArrayRef<T> list) {
  for (const T& t : list) add_edges(node, t);
}
template <class T>
void add_edges(Node&, const T&) {}

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;

// The results of an operator that is not a view of its input are no views for autograd, whatever its kernel did inside.
inline void forget_view(const Tensor& out) {
  if (out.defined() && out.is_view()) out.impl()->set_view(nullptr, ViewOrigin::None);
}
inline void forget_view(const std::vector<Tensor>& outs) {
  for (const Tensor& out : outs) forget_view(out);
}
void forget_view(const auto&) {}

inline void record(const Tensor& out, const intrusive_ptr<Node>& node, bool view) {
  if (!view) forget_view(out);
  set_history(out, node);
}
inline void record(const std::vector<Tensor>& outs, const intrusive_ptr<Node>& node, bool view) {
  for (const Tensor& out : outs) record(out, node, view);
}
void record(const auto&, const intrusive_ptr<Node>&, bool) {}

// The node is the history of all results, or of as many as its kDifferentiable says.
template <class NodeT, class R>
void record_results(const R& result, const intrusive_ptr<NodeT>& node, bool view) {
  if constexpr (is_tuple<R>) {
    size_t differentiable = std::tuple_size_v<R>, position = 0;
    if constexpr (requires { NodeT::kDifferentiable; }) differentiable = NodeT::kDifferentiable;
    const auto each = [&](const auto& out) {
      if (position++ < differentiable) {
        record(out, node, view);
      } else {
        forget_view(out);
      }
    };
    std::apply([&](const auto&... outs) { (each(outs), ...); }, result);
  } else {
    record(result, node, view);
  }
}

// Has the struct save arguments and results, in each way that it defines; with other numbers it does not compile.
template <class NodeT, class... Args>
void save_inputs(NodeT& node, const Args&... args) {
  if constexpr (requires { &NodeT::save; }) node.save(args...);
  if constexpr (requires { &NodeT::saved_arguments; }) node.saved_arguments() = std::forward_as_tuple(args...);
}
template <class NodeT, class R>
void save_results(NodeT& node, const R& result) {
  if constexpr (requires { &NodeT::saved_results; }) {
    const auto keep = [&](auto& member, const auto& each) {
      if constexpr (std::is_same_v<decltype(member), Saved&>) member = Saved::output(each, &node);
    };
    const auto keep_all = [&](auto&... members) {
      std::apply([&](const auto&... each) { (keep(members, each), ...); }, result);
    };
    std::apply(keep_all, node.saved_results());
  }
  if constexpr (requires { &NodeT::save_output; }) {
    if constexpr (is_tuple<R>) {
      std::apply([&](const auto&... each) { node.save_output(each...); }, result);
    } else {
      node.save_output(result);
    }
  }
}

}  // namespace detail

// The sizes of an argument, for a derivative that keeps no more of it.
struct SavedSizes : DimVector {
  SavedSizes& operator=(const Tensor& argument) {
    DimVector::operator=(argument.sizes());
    return *this;
  }
};

// For saved_arguments: the members of a tuple, one by one.
auto saved_each(auto& members) {
  return std::apply([](auto&... each) { return std::tie(each...); }, members);
}

// Note [Derivatives]
// A derivative is a struct derived from Node, beside the others of its family in autograd/derivatives. It may have
//   void save(const Tensor& self, ...)        all arguments of the operator; it keeps those that the formula needs
//   auto saved_arguments()                    instead of save: std::tie of the members that keep the arguments, one for
//                                             each; std::ignore where none does, a SavedSizes where only sizes are kept
//   void save_output(const Tensor& result)    all results; kept by Saved::output(result, this)
//   auto saved_results()                      instead of save_output, of several results: as saved_arguments
//   RUSH_SAVED(self, result)                  the list of its Saved members
//   static constexpr size_t kDifferentiable   how many of its results have gradients, the first ones; all, without it
//   static constexpr std::array kConstants    the arguments, by number, that must not ask for a gradient
// and has `apply`, which returns a gradient for each tensor argument. `needs(i)` says whether argument i's is asked
// for. Gradients may come back in the broadcast shape or in a wider dtype: the engine brings them to the argument's.
template <auto& op, class NodeT>
struct Derive;

template <class R, class... Args, Op<R(Args...)>& op, class NodeT>
struct Derive<op, NodeT> {
  static R call(Args... args) {
    if (!(detail::wants_grad(args) || ...)) return below(std::forward<Args>(args)...);
    if constexpr (requires { NodeT::kConstants; }) detail::refuse_gradients(op, NodeT::kConstants, args...);
    if constexpr (Op<R(Args...)>::is_inplace) {
      return inplace(std::forward<Args>(args)...);
    } else {
      auto node = make_intrusive<NodeT>();
      autograd::remember_forward_call(*node, op.name());
      (detail::add_edges(*node, args), ...);
      detail::save_inputs(*node, args...);
      R result = below(std::forward<Args>(args)...);
      detail::record_results(result, node, op.is_view());
      detail::save_results(*node, result);
      return result;
    }
  }

 private:
  static R below(Args... args) {
    const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
    return op.call_without(DispatchKey::Autograd, std::forward<Args>(args)...);
  }

  template <class... Rest>
  static R inplace(Tensor& self, Rest&&... rest) {
    if (!is_differentiable(self.scalar_type())) return below(self, std::forward<Rest>(rest)...);
    check_inplace(self, op.name());
    auto node = make_intrusive<NodeT>();
    autograd::remember_forward_call(*node, op.name());
    detail::add_edges(*node, self);
    (detail::add_edges(*node, rest), ...);
    Tensor before = alias_for_saving(self);
    detail::save_inputs(*node, before, rest...);
    preserve_if_saved(before);
    below(self, std::forward<Rest>(rest)...);
    rebase_history(self, node);
    detail::save_results(*node, self);
    return self;
  }
};

template <auto& op, class NodeT>
void derive(Registry& registry, SourceLocation where = SourceLocation::current()) {
  registry.kernel(op, DispatchKey::Autograd, &Derive<op, NodeT>::call, where);
}

}  // namespace rush
