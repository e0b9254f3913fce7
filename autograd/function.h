// Custom differentiable functions, as torch::autograd::Function: a struct with static forward and backward.
#pragma once
#include <algorithm>
#include <any>
#include <map>
#include <string>
#include <type_traits>

#include "autograd/debug/anomaly.h"
#include "autograd/grad_mode.h"
#include "autograd/saved.h"
#include "core/amp/autocast.h"

namespace rush::autograd {

// libtorch's names, from when what records was another class.
using Variable = Tensor;
using variable_list = Tensors;
using tensor_list = Tensors;

// Anything that forward hands to backward. The named readers are libtorch's, whose saved_data holds IValues; for other
// types there is std::any_cast. They throw TypeError when something else was saved.
class SavedValue : public std::any {
 public:
  using std::any::any;
  // What an ArrayRef or a literal refers to is copied: it may be gone when backward reads it.
  template <class T>
  requires(!std::is_base_of_v<std::any, std::remove_cvref_t<T>>) SavedValue& operator=(T&& value) {
    std::any::operator=(std::forward<T>(value));
    return *this;
  }
  template <class T>
  SavedValue& operator=(ArrayRef<T> values) {
    return *this = values.vec();
  }
  SavedValue& operator=(const char* text) { return *this = std::string(text); }

  // Numbers are converted, within the range of what is asked for; lists and text are not.
  double toDouble() const { return to_number().toDouble(); }
  int64_t toInt() const { return to_number().toLong(); }
  int64_t toSymInt() const { return toInt(); }
  bool toBool() const { return to_number().toBool(); }
  Scalar toScalar() const { return to_number(); }
  const Tensor& toTensor() const { return as<Tensor>("a tensor"); }
  const std::string& toStringRef() const { return as<std::string>("a string"); }
  // A view of the list, or a copy.
  IntArrayRef toIntList() const { return as<std::vector<int64_t>>("a list of integers"); }
  ArrayRef<double> toDoubleList() const { return as<std::vector<double>>("a list of numbers"); }
  ArrayRef<Tensor> toTensorList() const { return as<Tensors>("a list of tensors"); }
  // The elements of a list, each of which `get` hands out.
  std::vector<SavedValue> toList() const;
  const SavedValue& get() const { return *this; }
  std::vector<int64_t> toIntVector() const { return toIntList().vec(); }
  std::vector<double> toDoubleVector() const { return toDoubleList().vec(); }
  Tensors toTensorVector() const { return toTensorList().vec(); }
  // As the reader of that type.
  template <class T>
  T to() const {
    if constexpr (std::is_arithmetic_v<T>) {
      return to_number().to<T>();
    } else {
      return as<T>("a value of another type");
    }
  }

 private:
  template <class T>
  const T& as(const char* wanted) const {
    const T* value = std::any_cast<T>(static_cast<const std::any*>(this));
    RUSH_CHECK_TYPE(value, "saved_data: expected ", wanted, ", something else was saved");
    return *value;
  }
  Scalar to_number() const;
};

// What forward leaves for backward.
class AutogradContext {
 public:
  // Keeps inputs or outputs for the backward pass; values that are neither go into `saved_data`.
  void save_for_backward(Tensors tensors) { to_save_ = std::move(tensors); }
  // What was saved. Throws Error when one was written in place since, or the graph was freed.
  Tensors get_saved_variables() const { return saved_.get(); }
  // Inputs that forward wrote in place. It must return each; the output is then the same tensor, with this function as
  // its history, under the rules of in-place writes.
  void mark_dirty(Tensors inputs) { dirty_ = std::move(inputs); }
  // Outputs listed here get no gradient.
  void mark_non_differentiable(Tensors outputs) { non_differentiable_ = std::move(outputs); }
  // Whether the gradient of the i-th tensor argument is asked for.
  bool needs_input_grad(size_t i) const { return node_ && node_->needs(i); }
  // By default an output that received no gradient is given zeros.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }

  std::map<std::string, SavedValue> saved_data;

 private:
  template <class>
  friend class Function;
  template <class>
  friend struct CppNode;
  Tensors to_save_, non_differentiable_, dirty_;
  SavedList saved_;
  Node* node_ = nullptr;
  bool materialize_grads_ = true;
};

// How a function takes part in autocast, as torch.amp.custom_fwd and custom_bwd: its static member `autocast`. One that
// has none runs forward and backward each in the state around it.
struct CustomAutocast {
  // Forward gets its tensors in this dtype where autocast is on for their device and may cast them, and runs with
  // autocast off. None: forward runs in the state around it. Backward runs in the state that forward ran in.
  std::optional<ScalarType> cast_inputs;
};

namespace detail {
// Drops undefined gradients behind the first `count`.
void drop_undefined_tail(Tensors& grads, size_t count);
Tensor zeros_for(const GradMetadata& output);
}  // namespace detail

// What the names of custom functions start with; compat/ sets it to libtorch's "torch::autograd::".
inline std::string function_prefix;

// The node of a program's function F: `apply` calls F::backward with the gradients.
template <class F>
struct CppNode final : Node {
  AutogradContext ctx;
  std::vector<bool> is_tensor;     // of forward's arguments
  AutocastState forward_autocast;  // that forward ran in

  std::string name() const override { return function_prefix + Node::name(); }
  void visit_saved(SavedVisitor& visitor) override { rush::detail::visit_one(visitor, "saved", ctx.saved_); }

  Tensors apply(const Tensors& grads) override {
    Tensors given = grads;
    if (ctx.materialize_grads_) {
      for (size_t i = 0; i < given.size(); ++i) {
        const GradMetadata& output = output_metadata(i);
        if (!given[i].defined()) given[i] = detail::zeros_for(output);
      }
    }
    Tensors results = backward(given);
    detail::drop_undefined_tail(results, is_tensor.size());
    RUSH_CHECK(results.size() == is_tensor.size(), name(), ": backward returned ", results.size(),
               " gradients for the ", is_tensor.size(), " arguments of forward");
    Tensors of_tensors;
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_tensor[i]) of_tensors.push_back(results[i]);
    }
    return of_tensors;
  }

 private:
  Tensors backward(Tensors& given) {
    if constexpr (requires { F::autocast; }) {
      const autocast::StateGuard as_in_forward(forward_autocast);
      const autocast::CacheScope casts;
      return F::backward(&ctx, given);
    } else {
      return F::backward(&ctx, given);
    }
  }
};

namespace detail {
void add_argument(Node& node, std::vector<bool>& is_tensor, const Tensor& argument);
inline void add_argument(Node& node, std::vector<bool>& is_tensor, const std::optional<Tensor>& argument) {
  add_argument(node, is_tensor, argument.value_or(Tensor()));
}
inline void add_argument(Node& node, std::vector<bool>& is_tensor, TensorList arguments) {
  for (const Tensor& each : arguments) add_argument(node, is_tensor, each);
}
template <class T>
void add_argument(Node&, std::vector<bool>& is_tensor, const T&) {
  is_tensor.push_back(false);
}
// Gives the outputs their history; one that is an input becomes a view of it first, unless it was written in place.
void record_outputs(Tensors& outputs, const Tensors& non_differentiable, const Tensors& dirty,
                    const intrusive_ptr<Node>& node);
inline Tensors as_list(const Tensor& output) { return {output}; }
inline Tensors as_list(const Tensors& outputs) { return outputs; }

// Prepares the arguments of a forward call: see CustomAutocast.
class ForwardAutocast {
 public:
  ForwardAutocast(const CustomAutocast& custom, AutocastState& ran_in);
  template <class T>
  decltype(auto) operator()(T&& argument) const {
    if constexpr (std::is_same_v<std::decay_t<T>, Tensor>) {
      return cast(argument);
    } else if constexpr (std::is_same_v<std::decay_t<T>, std::optional<Tensor>>) {
      return argument ? std::optional(cast(*argument)) : std::nullopt;
    } else {
      return std::forward<T>(argument);
    }
  }

 private:
  Tensor cast(const Tensor& argument) const;
  std::optional<ScalarType> cast_inputs_;
  AutocastState around_;
  autocast::StateGuard state_;
};
}  // namespace detail

// struct Square : autograd::Function<Square> {
//   static Tensor forward(AutogradContext* ctx, const Tensor& x) { ctx->save_for_backward({x}); return x * x; }
//   static Tensors backward(AutogradContext* ctx, Tensors g) { return {g[0] * ctx->get_saved_variables()[0] * 2}; }
// };
// Tensor y = Square::apply(x);
//
// `forward` runs without recording and returns a Tensor or Tensors; `backward` returns a gradient for each argument of
// `forward` (undefined for those that are not tensors; more undefined ones may follow) and may itself be
// differentiated. A TensorList counts as so many arguments, a std::vector as one that is no tensor, as in libtorch:
// pass TensorList(parameters).
template <class T>
class Function {
 public:
  // A template of its own, so that T is complete when `forward` is looked up.
  template <class X = T, class... Args>
  static auto apply(Args&&... args) {
    using Result = std::decay_t<decltype(X::forward(nullptr, args...))>;
    auto node = make_intrusive<CppNode<X>>();
    remember_forward_call(*node, "a custom function");
    (detail::add_argument(*node, node->is_tensor, args), ...);
    const bool recording = GradMode::is_enabled() && std::ranges::any_of(node->next_edges(), &Edge::valid);
    node->ctx.node_ = node.get();
    Tensors outputs;
    {
      const NoGradGuard no_grad;
      if constexpr (requires { X::autocast; }) {
        const detail::ForwardAutocast prepared(X::autocast, node->forward_autocast);
        outputs = detail::as_list(X::forward(&node->ctx, prepared(std::forward<Args>(args))...));
      } else {
        outputs = detail::as_list(X::forward(&node->ctx, std::forward<Args>(args)...));
      }
    }
    if (recording) {
      detail::record_outputs(outputs, node->ctx.non_differentiable_, node->ctx.dirty_, node);
      node->ctx.saved_ = saved_list(node->ctx.to_save_, outputs, node.get());
    }
    node->ctx.to_save_.clear();
    node->ctx.dirty_.clear();
    if constexpr (std::is_same_v<Result, Tensor>) {
      return outputs[0];
    } else {
      return outputs;
    }
  }

 private:
  static SavedList saved_list(const Tensors& tensors, const Tensors& outputs, Node* node) {
    SavedList list;
    for (const Tensor& t : tensors) {
      const bool is_output = std::ranges::any_of(outputs, [&](const Tensor& output) { return output.is_same(t); });
      list.list().push_back(is_output ? Saved::output(t, node) : Saved(t));
    }
    return list;
  }
};

}  // namespace rush::autograd
