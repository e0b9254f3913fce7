// Derivatives of operators from outside: Library::register_autograd makes a node of a lambda, or of another operator.
#pragma once
#include "autograd/derive.h"
#include "core/library/library.h"
#include "core/ops/factory/factories.h"

namespace rush {

namespace library::detail {

// How a node keeps an argument: what views another's memory is copied, tensors are kept as Note [Saved tensors] says.
template <class T>
struct Kept {
  T value{};
  void keep(const T& argument) { value = argument; }
  const T& get() const { return value; }
  void visit(SavedVisitor&) {}
};
template <class View, class Owner>
struct KeptCopy {
  Owner value;
  void keep(const View& argument) { value = Owner(argument.begin(), argument.end()); }
  View get() const { return value; }
  void visit(SavedVisitor&) {}
};
template <>
struct Kept<std::string_view> : KeptCopy<std::string_view, std::string> {};
template <class T>
struct Kept<ArrayRef<T>> : KeptCopy<ArrayRef<T>, std::vector<T>> {};
template <class SavedT, class T>
struct KeptTensors {
  SavedT saved;
  void keep(const T& argument) { saved = SavedT(argument); }
  auto get() const { return saved.get(); }
  void visit(SavedVisitor& visitor) { rush::detail::visit_one(visitor, "argument", saved); }
};
template <>
struct Kept<Tensor> : KeptTensors<Saved, Tensor> {};
template <>
struct Kept<TensorList> : KeptTensors<SavedList, TensorList> {};
template <>
struct Kept<OptionalTensorList> : KeptCopy<OptionalTensorList, std::vector<std::optional<Tensor>>> {};
template <class T>
struct Kept<std::optional<T>> {
  std::optional<Kept<T>> kept;
  void keep(const std::optional<T>& argument) {
    if (argument) kept.emplace().keep(*argument);
  }
  std::optional<T> get() const { return kept ? std::optional<T>(kept->get()) : std::nullopt; }
  void visit(SavedVisitor& visitor) {
    if (kept) kept->visit(visitor);
  }
};
template <>
struct Kept<OptionalIntArrayRef> : Kept<std::optional<IntArrayRef>> {
  void keep(const OptionalIntArrayRef& argument) {
    Kept<std::optional<IntArrayRef>>::keep(argument.has_value() ? std::optional(*argument) : std::nullopt);
  }
  OptionalIntArrayRef get() const {
    const std::optional<IntArrayRef> value = Kept<std::optional<IntArrayRef>>::get();
    return value ? OptionalIntArrayRef(*value) : OptionalIntArrayRef();
  }
};

template <class R>
struct ResultsOf {
  using type = std::tuple<std::decay_t<R>>;
};
template <class... T>
struct ResultsOf<std::tuple<T...>> {
  using type = std::tuple<T...>;
};

// Results that the derivative is given, each a tensor.
template <class Results, bool kept>
struct KeptResults : Node {
  std::tuple<> results() const { return {}; }
};
template <class... T>
struct KeptResults<std::tuple<T...>, true> : Node {
  std::array<Saved, sizeof...(T)> saved_results;
  void save_output(const T&... results) { saved_results = {Saved::output(results, this)...}; }
  auto results() const {
    return std::apply([](const auto&... each) { return std::tuple(each.get()...); }, saved_results);
  }
};

inline Tensors as_tensors(Tensor gradient) { return {std::move(gradient)}; }
inline Tensors as_tensors(Tensors gradients) { return gradients; }
template <class... T>
Tensors as_tensors(std::tuple<T...> gradients) {
  return std::apply([](auto&... each) { return Tensors{std::move(each)...}; }, gradients);
}

// What is inline here is compiled with the operators: a program that loads them may have been linked without it.

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

template <auto& op, class Derivative, class Sig>
struct OutsideBackward;

template <class Derivative, class Results, class... Args>
struct TakesResults;
template <class Derivative, class... R, class... Args>
struct TakesResults<Derivative, std::tuple<R...>, Args...> {
  static constexpr bool value = std::is_invocable_v<Derivative, const R&..., Args&..., const R&...>;
  static_assert(value || std::is_invocable_v<Derivative, const R&..., Args&...>,
                "a derivative takes the gradients of the results, the arguments, and perhaps the results");
};

// The node of an operator R(Args...): `apply` hands gradients, arguments and results to the derivative.
template <auto& op, class Derivative, class R, class... Args>
struct OutsideBackward<op, Derivative, R(Args...)>
    : KeptResults<typename ResultsOf<R>::type,
                  TakesResults<Derivative, typename ResultsOf<R>::type, std::decay_t<Args>...>::value> {
  using Results = typename ResultsOf<R>::type;
  std::tuple<Kept<std::decay_t<Args>>...> arguments;

  std::string name() const override { return node_name(op); }
  void save(const std::decay_t<Args>&... given) {
    std::apply([&](auto&... kept) { (kept.keep(given), ...); }, arguments);
  }
  void visit_saved(SavedVisitor& visitor) override {
    std::apply([&](auto&... kept) { (kept.visit(visitor), ...); }, arguments);
    if constexpr (requires { this->saved_results; }) {
      for (Saved& saved : this->saved_results) visitor.visit("result", saved);
    }
  }
  Tensors apply(const Tensors& g) override {
    auto values = std::tuple_cat(gradients(g, std::make_index_sequence<std::tuple_size_v<Results>>()),
                                 std::apply([](const auto&... kept) { return std::tuple(kept.get()...); }, arguments),
                                 this->results());
    Tensors result = as_tensors(std::apply(Derivative(), values));
    check_gradients(op, result, this->next_edges().size());
    return result;
  }

 private:
  template <size_t... I>
  auto gradients(const Tensors& g, std::index_sequence<I...>) const {
    return std::tuple(gradient_or_zeros(g[I], this->output_metadata(I))...);
  }
};

// An operator as a derivative.
template <auto& derivative>
struct CallOf {
  template <class... T>
  auto operator()(const T&... arguments) const -> decltype(derivative(arguments...)) {
    return derivative(arguments...);
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
  register_autograd<op>(library::detail::CallOf<derivative>(), where);
}

}  // namespace rush
