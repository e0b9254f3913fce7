// opcheck: holds an operator to what it says of itself.
#pragma once
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

namespace detail {

OpcheckReport check_operator(const OpBase& op, const Signature& signature, Stack arguments,
                             const OpcheckOptions& options);
// Throws Error unless there are no problems.
void require_none(const OpBase& op, const OpcheckReport& report);

}  // namespace detail

/// Checks an operator with these arguments, in the schema's order, and says everything that is wrong:
///   - the call writes no argument, and no result shares memory with an argument or another, unless the schema says so;
///   - the meta function gives the sizes, strides and dtypes of the kernel;
///   - arguments with other strides give the same results;
///   - it is registered by its name, and a call by name gives the same results as one before it;
///   - where an argument requires a gradient, there is a derivative, and gradcheck confirms it on float64 copies;
///   - devices that the operator has kernels for agree.
/// The arguments stay as they are. torch.library.opcheck.
template <class R, class... Args>
OpcheckReport opcheck_report(const Op<R(Args...)>& op, const OpcheckOptions& options,
                             const std::type_identity_t<std::decay_t<Args>>&... arguments) {
  Stack stack;
  (rush::detail::push<std::decay_t<Args>>(stack, arguments), ...);
  return detail::check_operator(op, signature_of<R(Args...)>(), std::move(stack), options);
}

/// The same with the default options; throws Error, with all that is wrong, unless nothing is.
template <class R, class... Args>
void opcheck(const Op<R(Args...)>& op, const std::type_identity_t<std::decay_t<Args>>&... arguments) {
  detail::require_none(op, opcheck_report(op, {}, arguments...));
}

}  // namespace rush::library
