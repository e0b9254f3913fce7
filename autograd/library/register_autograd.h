// Derivatives of operators from outside: Library::register_autograd makes a node of a lambda, or of another operator.
#pragma once
#include <iterator>
#include <utility>

#include "autograd/derive.h"
#include "core/dispatch/boxed.h"
#include "core/dispatch/value_tensors.h"
#include "core/library/library.h"
#include "core/ops/factory/factories.h"

namespace rush {

namespace library::detail {

// What is inline here is compiled with the operators: a program that loads them may have been linked without it.

// A call's arguments as its node keeps them: boxed, so that none is a view of memory that is gone, and tensors apart,
// as Note [Saved tensors] says.
class SavedArguments {
 public:
  template <class... T>
  void save(const T&... arguments) {
    (rush::detail::push<std::decay_t<T>>(values_, arguments), ...);
    for (Value& value : values_) {
      tensors_.emplace_back(tensors_of(value));
      value = with_tensors(value, {});
    }
  }
  // The results of the node's call.
  template <class... T>
  void save_results(Node* node, const T&... results) {
    (rush::detail::push(values_, results), ...);
    for (Value& value : values_) {
      SavedList& list = tensors_.emplace_back();
      for (const Tensor& tensor : tensors_of(value)) list.list().push_back(Saved::output(tensor, node));
      value = with_tensors(value, {});
    }
  }
  // Throws as Saved::get.
  Stack get() const {
    Stack values;
    for (size_t i = 0; i < values_.size(); ++i) values.push_back(with_tensors(values_[i], tensors_[i].get()));
    return values;
  }
  void visit(SavedVisitor& visitor, const char* name) {
    for (SavedList& each : tensors_) rush::detail::visit_one(visitor, name, each);
  }

 private:
  Stack values_;                    // without their tensors
  std::vector<SavedList> tensors_;  // of each
};

// The arguments of these types, some of which are views of the values.
template <class... Args, size_t... I>
std::tuple<Args...> unboxed(Stack& values, std::index_sequence<I...> /*numbers*/) {
  return {rush::detail::unbox<Args>(values.data(), I)...};
}

// The type of a tuple of the results.
template <class R, class... Args>
auto results_of(R (*)(Args...)) -> decltype(std::tuple(std::declval<std::decay_t<R>>()));

inline Tensors as_tensors(Tensor gradient) { return {std::move(gradient)}; }
inline Tensors as_tensors(Tensors gradients) { return gradients; }
template <class... T>
Tensors as_tensors(std::tuple<T...> gradients) {
  return std::apply([](auto&... each) { return Tensors{std::move(each)...}; }, gradients);
}

// Throws ValueError unless there is a gradient for each of the operator's tensors.
inline void check_gradients(const OpBase& op, const Tensors& gradients, size_t tensors) {
  RUSH_CHECK_VALUE(gradients.size() == tensors, op.name(), ": its derivative returned ", gradients.size(),
                   " gradients for ", tensors, " tensors");
}
// "ClampByBackward" for "my::clamp_by".
inline std::string node_name(const OpBase& op) {
  const std::string_view name = op.name().substr(op.name().rfind(':') + 1);
  std::string node;
  bool begins = true;
  for (const char c : name.substr(0, name.find('.'))) {
    if (c != '_') node += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return node + "Backward";
}
// Zeros for a result that was not used.
inline Tensor gradient_or_zeros(const Tensor& gradient, const GradMetadata& result) {
  return gradient.defined() ? gradient : zeros(result.sizes, TensorOptions(result.dtype).device(result.device));
}
// How many outputs of the node a result is: a number is none.
inline ptrdiff_t outputs_in(const Tensor&) { return 1; }
inline ptrdiff_t outputs_in(const Tensors& list) { return std::ssize(list); }
template <class T>
ptrdiff_t outputs_in(const T&) {
  return 0;
}
// The gradient of a result, of those of its outputs; 0 for a number.
template <class Result>
Result take_gradient(Tensors::const_iterator& next, ptrdiff_t outputs) {
  const auto first = std::exchange(next, next + outputs);
  if constexpr (std::is_same_v<Result, Tensor>) {
    return *first;
  } else if constexpr (std::is_same_v<Result, Tensors>) {
    return {first, next};
  } else {
    return {};
  }
}

template <class R, class... Args>
inline constexpr bool writes_first_alone = false;
template <class... Rest>
inline constexpr bool writes_first_alone<Tensor&, Tensor&, Rest...> = !(rush::detail::is_written<Rest> || ...);

// The node of an operator: `apply` hands gradients, arguments and results to the derivative.
template <auto& op, class Derivative, class Sig, class Results = decltype(results_of(std::declval<Sig*>()))>
struct OutsideBackward;
template <auto& op, class Derivative, class R, class... Args, class... Results>
struct OutsideBackward<op, Derivative, R(Args...), std::tuple<Results...>> : Node {
  static constexpr bool kTakesResults =
      std::is_invocable_v<Derivative, const Results&..., std::decay_t<Args>&..., const Results&...>;
  static_assert(kTakesResults || std::is_invocable_v<Derivative, const Results&..., std::decay_t<Args>&...>,
                "a derivative takes the gradients of the results, the arguments, and perhaps the results");
  static_assert(!Op<R(Args...)>::is_inplace || writes_first_alone<R, Args...>,
                "an operator that has a derivative may write its first argument alone, and returns it");
  SavedArguments arguments, results;                    // no results where the derivative takes none
  std::array<ptrdiff_t, sizeof...(Results)> outputs{};  // in each result

  std::string name() const override { return node_name(op); }
  void save(const std::decay_t<Args>&... given) { arguments.save(given...); }
  void save_output(const Results&... given) {
    outputs = {outputs_in(given)...};
    if constexpr (kTakesResults) results.save_results(this, given...);
  }
  void visit_saved(SavedVisitor& visitor) override {
    arguments.visit(visitor, "argument");
    results.visit(visitor, "result");
  }
  Tensors apply(const Tensors& g) override {
    Stack values = arguments.get(), kept = results.get();
    auto given =
        std::tuple_cat(gradients_of_results(g, std::index_sequence_for<Results...>()),
                       unboxed<std::decay_t<Args>...>(values, std::index_sequence_for<Args...>()), taken_results(kept));
    Tensors gradients = as_tensors(std::apply(Derivative(), given));
    check_gradients(op, gradients, this->next_edges().size());
    return gradients;
  }

 private:
  template <size_t... I>
  std::tuple<Results...> gradients_of_results(const Tensors& g, std::index_sequence<I...>) const {
    Tensors of_outputs;
    for (size_t i = 0; i < g.size(); ++i) of_outputs.push_back(gradient_or_zeros(g[i], this->output_metadata(i)));
    auto next = of_outputs.cbegin();
    return {take_gradient<Results>(next, outputs[I])...};
  }
  static auto taken_results([[maybe_unused]] Stack& kept) {
    if constexpr (kTakesResults) {
      return unboxed<Results...>(kept, std::index_sequence_for<Results...>());
    } else {
      return std::tuple();
    }
  }
};

}  // namespace library::detail

template <auto& op, class Derivative>
void Library::register_autograd(Derivative, SourceLocation where) {
  static_assert(std::is_empty_v<Derivative> && std::is_default_constructible_v<Derivative>,
                "a derivative is a lambda without captures");
  using Sig = library::detail::Sig<op>;
  using Backward = library::detail::OutsideBackward<op, Derivative, Sig>;
  note<op>(Kind::Autograd, kCPU, &Derive<op, Backward>::call, where, [](Registry& registry, const Step& step) {
    registry.kernel(op, DispatchKey::Autograd, reinterpret_cast<Sig*>(step.fn), step.where);
  });
}

template <auto& op, auto& derivative>
void Library::register_autograd(SourceLocation where) {
  const auto call = [](const auto&... arguments) -> decltype(derivative(arguments...)) {
    return derivative(arguments...);
  };
  register_autograd<op>(call, where);
}

}  // namespace rush
