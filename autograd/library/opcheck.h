// opcheck: holds an operator to what it says of itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/debug/gradcheck.h"
#include "core/dispatch/boxed.h"
#include "core/dispatch/value.h"
#include "core/library/signature.h"

namespace rush::library {

/// How opcheck compares.
struct OpcheckOptions {
  double rtol = 1e-4, atol = 1e-5;       // of results on two devices
  autograd::GradcheckOptions gradcheck;  // of the derivative
};

/// What opcheck found.
struct OpcheckReport {
  std::vector<std::string> problems;  // what is wrong, one line each
  std::vector<std::string> left_out;  // checks that could not be made, and why
};

/// Checks an operator with these arguments, in the schema's order, and says everything that is wrong:
///   - the call writes no argument, and shares no argument's memory with a result, unless the schema says so;
///   - the meta function gives the sizes, strides and dtypes of the kernel;
///   - arguments with other strides give the same results;
///   - a call by name, and a typed one, give the same results as another typed one;
///   - where an argument requires a gradient, there is a derivative, and gradcheck confirms it on float64 copies;
///   - devices that the operator has kernels for agree.
/// The arguments stay as they are. torch.library.opcheck.
template <class R, class... Args>
OpcheckReport opcheck_report(const Op<R(Args...)>& op, const OpcheckOptions& options,
                             const std::type_identity_t<std::decay_t<Args>>&... arguments);

/// The same with the default options; throws Error, with all that is wrong, unless nothing is.
template <class R, class... Args>
void opcheck(const Op<R(Args...)>& op, const std::type_identity_t<std::decay_t<Args>>&... arguments);

namespace detail {

// Calls an operator with a stack of its arguments, and returns its results.
using StackCall = std::function<Stack(Stack arguments)>;

OpcheckReport check_operator(const OpBase& op, const Signature& signature, const StackCall& typed, Stack arguments,
                             const OpcheckOptions& options);
// Throws Error unless there are no problems.
void require_none(const OpBase& op, const OpcheckReport& report);

template <class R, class... Args, size_t... I>
Stack call_typed(const Op<R(Args...)>& op, Stack arguments, std::index_sequence<I...>) {
  std::tuple<std::decay_t<Args>...> held{rush::detail::unbox<std::decay_t<Args>>(arguments.data(), I)...};
  Stack results;
  if constexpr (std::is_void_v<R>) {
    op(std::get<I>(held)...);
  } else {
    rush::detail::push_results(results, static_cast<const std::decay_t<R>&>(op(std::get<I>(held)...)));
  }
  return results;
}

}  // namespace detail

template <class R, class... Args>
OpcheckReport opcheck_report(const Op<R(Args...)>& op, const OpcheckOptions& options,
                             const std::type_identity_t<std::decay_t<Args>>&... arguments) {
  Stack stack;
  (rush::detail::push<std::decay_t<Args>>(stack, arguments), ...);
  const auto typed = [&](Stack given) {
    return detail::call_typed(op, std::move(given), std::index_sequence_for<Args...>());
  };
  return detail::check_operator(op, signature_of<R(Args...)>(), typed, std::move(stack), options);
}

template <class R, class... Args>
void opcheck(const Op<R(Args...)>& op, const std::type_identity_t<std::decay_t<Args>>&... arguments) {
  detail::require_none(op, opcheck_report(op, {}, arguments...));
}

}  // namespace rush::library
