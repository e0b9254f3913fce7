// rush::derivative: gives an operator that a program made while it ran the derivative that a lambda computes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "autograd/derive.h"
#include "autograd/library/register_autograd.h"
#include "core/dispatch/closure_kernel.h"

namespace rush {

namespace detail {

template <class... Args>
using LambdaDerivative = std::function<Tensors(const Tensors& grads, Args...)>;

template <class... Args>
struct LambdaBackward final : Node {
  LambdaBackward(const OpBase& differentiated, const LambdaDerivative<Args...>& fn, const Args&... args)
      : op(differentiated), backward(fn) {
    arguments.save(args...);
  }

  std::string name() const override { return str(op.name(), "Backward"); }
  Tensors apply(const Tensors& grads) override {
    Stack values = arguments.get();
    const auto given = library::detail::unboxed<std::decay_t<Args>...>(values, std::index_sequence_for<Args...>());
    Tensors of_tensors = std::apply([&](const auto&... each) { return backward(grads, each...); }, given);
    library::detail::check_gradients(op, of_tensors, next_edges().size());
    return of_tensors;
  }
  void visit_saved(SavedVisitor& visitor) override { arguments.visit(visitor, "argument"); }

  const OpBase& op;
  const LambdaDerivative<Args...>& backward;
  library::detail::SavedArguments arguments;
};

// The Autograd kernel.
template <class Signature>
class DifferentiableCall;
template <class R, class... Args>
class DifferentiableCall<R(Args...)> final : public ClosureKernel<R(Args...)> {
 public:
  DifferentiableCall(const Op<R(Args...)>& op, LambdaDerivative<Args...> backward)
      : op_(op), backward_(std::move(backward)) {}

  R call(Args... args) override {
    if (!(wants_grad(args) || ...)) return below(std::forward<Args>(args)...);
    auto node = make_intrusive<LambdaBackward<Args...>>(op_, backward_, args...);
    autograd::remember_forward_call(*node, op_.name());
    (add_edges(*node, args), ...);
    R result = below(std::forward<Args>(args)...);
    record_results(result, node, false);
    return result;
  }

 private:
  R below(Args... args) const {
    const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
    return op_.call_without(DispatchKey::Autograd, std::forward<Args>(args)...);
  }

  const Op<R(Args...)>& op_;
  const LambdaDerivative<Args...> backward_;
};

}  // namespace detail

/// Gives `op`, an operator that the program made, a derivative: `backward` gets the gradients of the results (undefined
/// for a result that received none) and the arguments of the call, and returns a gradient for each tensor argument,
/// which may be undefined where none is asked for. It may call any operators, and is differentiated again through
/// those.
///   rush::derivative(scale.op(), [](const rush::Tensors& g, const rush::Tensor&, double a) -> rush::Tensors {
///     return {g[0] * a};
///   });
/// Not while other threads call the operator. Throws ValueError where it has a derivative.
template <class R, class... Args>
void derivative(Op<R(Args...)>& op, std::type_identity_t<detail::LambdaDerivative<Args...>> backward,
                SourceLocation where = SourceLocation::current()) {
  static_assert(!Op<R(Args...)>::is_inplace, "rush::derivative is for operators that write no argument");
  RUSH_CHECK_VALUE(!op.has_kernel(DispatchKey::Autograd), op.name(), " has a derivative");
  auto kernel = std::make_unique<detail::DifferentiableCall<R(Args...)>>(op, std::move(backward));
  registry().kernel(op, DispatchKey::Autograd, ClosureKernel<R(Args...)>::function_of(std::move(kernel)), where);
}

}  // namespace rush
