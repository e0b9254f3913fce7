#include "core/library/library.h"

#include "core/dispatch/schema.h"

namespace rush {

namespace library::detail {

void throw_no_kernel(const OpBase& op, DeviceType device, KeySet devices) {
  RUSH_CHECK_NOT_IMPLEMENTED(device != kMeta, op.name(),
                             ": has no meta function, which register_fake gives it; it has functions for ", devices);
  RUSH_THROW(NotImplementedError, op.name(), ": has no function for tensors on ", device_type_name(device),
             "; it has functions for ", devices);
}

void throw_returned_argument(const OpBase& op) {
  RUSH_THROW(ValueError, op.name(), ": returns an argument as it is, which its schema does not say: return a copy, or ",
             "write \"(a)\" behind both types");
}

void throw_no_derivative(const OpBase& op) {
  RUSH_THROW(NotImplementedError, op.name(), ": an argument requires a gradient, and there is no derivative: ",
             "register_autograd gives one; call it under a NoGradGuard, or with detach(), if none is wanted");
}

const OpBase& operator_named(std::string_view name) {
  const OpBase* op = registry().find(name);
  RUSH_CHECK_NOT_IMPLEMENTED(op, "there is no operator named '", name, "'");
  return *op;
}

}  // namespace library::detail

void Library::check_step(size_t i) const {
  const Step& step = steps_[i];
  bool is_listed = step.kind != Kind::Autograd;
  for (size_t j = 0; j < steps_.size(); ++j) {
    const Step& other = steps_[j];
    if (other.name() != step.name()) continue;
    RUSH_CHECK_VALUE(other.op == step.op, "add_operators: two operators are named ", step.name());
    const bool is_again = j < i && other.kind == step.kind && other.device == step.device;
    RUSH_CHECK_VALUE(!is_again, step.name(), ": is given the same twice, at ", other.where.file_name(), ":",
                     other.where.line(), " and ", step.where.file_name(), ":", step.where.line());
    RUSH_CHECK_VALUE(j == i || step.kind != Kind::Composite, step.name(),
                     ": a composite operator has neither kernels nor a derivative of its own");
    is_listed = is_listed || other.kind != Kind::Autograd;
  }
  RUSH_CHECK_VALUE(is_listed, step.name(), ": has a derivative and no kernel");
}

void Library::check(const Registry& registry) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    library::check_signature(*step.op, step.signature);
    const OpBase* taken = registry.find(step.name());
    if (taken) {
      const SourceLocation where = taken->registered_at(DispatchKey::Dense);
      RUSH_THROW(ValueError, "add_operators: there is an operator ", step.name(), " already, registered at ",
                 where.file_name(), ":", where.line());
    }
    check_step(i);
  }
}

// A derivative is set after the kernels, which list the operator.
void Library::commit(Registry& registry) const {
  for (const bool derivatives : {false, true}) {
    for (const Step& step : steps_) {
      if ((step.kind == Kind::Autograd) == derivatives) step.apply(registry, step);
    }
  }
}

void add_operators(void (*body)(Library&)) {
  static std::mutex one_at_a_time;
  Library library;
  body(library);
  const std::lock_guard lock(one_at_a_time);
  library.check(registry());
  library.commit(registry());
}

}  // namespace rush
