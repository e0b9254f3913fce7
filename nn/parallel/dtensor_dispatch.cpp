// The fallback by which operators compute on DTensors: Note [Distributed tensors].
#include <algorithm>
#include <atomic>
#include <cstring>

#include "autograd/grad_mode.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/parallel/dtensor_parts.h"
#include "nn/parallel/dtensor_rules.h"

namespace rush::nn::parallel::detail {

namespace {

using distributed::DeviceMesh;

// Calls `each` with the defined tensors of the values, one after the other, in whose places come those that it returns.
template <class Each>
void replace_tensors(Stack& stack, const Each& each) {
  for (Value& value : stack) {
    if (!holds_tensors(value)) continue;
    std::vector<Tensor> tensors = tensors_of(value);
    for (Tensor& tensor : tensors) {
      if (tensor.defined()) tensor = each(tensor);
    }
    value = with_tensors(value, std::move(tensors));
  }
}

// Null where the call has no DTensor.
const DTensorState* first_state(const Stack& stack) {
  const DTensorState* found = nullptr;
  for (const Value& value : stack) {
    if (value.is<Tensor>()) {
      found = dtensor_state(value.as<Tensor>());
    } else if (holds_tensors(value)) {
      for (const Tensor& each : tensors_of(value)) found = found ? found : dtensor_state(each);
    }
    if (found) return found;
  }
  return nullptr;
}

// Steps of optimisers take lists that go together element by element, of parameters, gradients and states.
bool is_step(const OpBase& op) { return op.name().ends_with("_step_"); }

class DTensorCall {
 public:
  DTensorCall(const OpBase& op, Stack& stack, const DeviceMesh& mesh)
      : op_(op),
        stack_(stack),
        mesh_(mesh),
        replicated_(all_replicated(mesh)),
        writes_(std::strstr(op.schema(), "(a!)")) {
    replace_tensors(stack_, [&](const Tensor& each) {
      args_.push_back(as_dtensor(each));
      given_.push_back(args_.back().placements());
      return each;
    });
  }

  void run(const Rule* rule) {
    check_writes();
    place(rule);
    const DispatchStateGuard plain{KeySet(dtensor_key())};
    size_t arg = 0;
    replace_tensors(stack_, [&](const Tensor&) { return local_of(arg++); });
    // A local tensor may have other strides than the whole, and sizes of 1 where the whole has none.
    const bool is_reshape = &op_ == &ops::view || (!results_.empty() && rule->sizes == SizeList::Reshape);
    (is_reshape ? static_cast<const OpBase&>(ops::reshape) : op_).call_boxed(stack_);
    size_t result = 0;
    replace_tensors(stack_, [&](const Tensor& local) { return writes_ ? written() : wrapped(local, result++); });
  }

 private:
  // Indices and masks that a forward pass makes, and numbers, are the same on all processes. Other tensors may differ.
  DTensor as_dtensor(const Tensor& tensor) const {
    if (const DTensorState* state = dtensor_state(tensor)) {
      RUSH_CHECK_VALUE(state->spec.mesh == mesh_, op_.name(), ": its DTensors are on different meshes, ", mesh_.str(),
                       " and ", state->spec.mesh.str());
      return DTensor(tensor);
    }
    RUSH_CHECK_TYPE(tensor.dim() == 0 || is_integral(tensor.scalar_type(), true), op_.name(),
                    ": got a DTensor and a plain tensor of ", tensor.scalar_type(), " with sizes ", tensor.sizes(),
                    "; distribute_tensor or DTensor::from_local makes a DTensor of it");
    return DTensor(wrap_local(tensor, {mesh_, replicated_, DimVector(tensor.sizes())}));
  }

  void check_writes() const {
    const bool records = GradMode::is_enabled() && std::ranges::any_of(args_, &Tensor::requires_grad);
    RUSH_CHECK_NOT_IMPLEMENTED(!writes_ || !records, op_.name(), ": a DTensor is written in place under NoGradGuard ",
                               "only; the operator that returns a new one is differentiable");
  }

  // Chooses placements, and redistributes the arguments.
  void place(const Rule* rule) {
    placed_.args.assign(args_.size(), replicated_);
    if (given_ == placed_.args) return;
    if (is_step(op_)) {
      follow_parameters();
    } else if (!rule) {
      throw_no_rule();
    } else if (rule->pattern) {
      choose(*rule);
    }
    for (size_t i = 0; i < args_.size(); ++i) args_[i] = args_[i].redistribute(placed_.args[i]);
  }

  void follow_parameters() {
    const size_t parameters = tensors_of(stack_[0]).size();
    for (size_t i = 0; i < args_.size(); ++i) {
      const size_t parameter = i % parameters;
      placed_.args[i] = given_[parameter];
      const bool is_sum = std::ranges::any_of(placed_.args[i], &Placement::is_partial);
      if (!args_[i].is_same_size(args_[parameter]) || is_sum) throw_no_rule();
    }
  }

  void choose(const Rule& rule) {
    RuleCall call{stack_, {}, {}};
    {
      const DispatchStateGuard plain(KeySet(dtensor_key()) | DispatchKey::Autograd | DispatchKey::Autocast);
      for (const Tensor& each : args_) call.args.push_back(on_meta(each));
      Stack whole = writes_ ? Stack{call.args[0]} : results_on_meta();
      replace_tensors(whole, [&](const Tensor& each) { return call.results.emplace_back(each); });
    }
    const auto chosen = choose_placements(rule, call, given_, mesh_, writes_);
    if (!chosen) throw_no_rule();
    placed_ = *chosen;
    for (size_t i = 0; i < call.results.size(); ++i)
      results_.push_back({mesh_, placed_.results[i], DimVector(call.results[i].sizes())});
    if (rule.sizes == SizeList::Reshape) stack_.resize(2);
    if (rule.sizes != SizeList::None) stack_[1] = IntArrayRef(local_sizes(results_[0])).vec();
  }

  // The sizes of the whole, without memory.
  static Tensor on_meta(const Tensor& t) { return empty(t.sizes(), t.options().device(kMeta)); }

  // What the operator would return for whole tensors; it checks their sizes, too.
  Stack results_on_meta() const {
    Stack stack = stack_;
    replace_tensors(stack, on_meta);
    for (Value& value : stack) {
      if (value.is<Device>()) value = Device(kMeta);
    }
    op_.call_boxed(stack);
    return stack;
  }

  [[noreturn]] void throw_no_rule() const {
    std::string all;
    for (const Placements& each : given_) all += str(all.empty() ? "" : ", ", each);
    RUSH_THROW(NotImplementedError, op_.name(), ": there is no rule for DTensors placed ", all,
               "; DTensor::redistribute makes replicated ones, on which every operator computes");
  }

  Tensor local_of(size_t arg) const {
    if (writes_) return dtensor_state(args_[arg])->local;
    // How its gradient lies: Note [Gradients of distributed tensors].
    Placements gradient = placed_.args[arg];
    for (size_t m = 0; m < gradient.size(); ++m) {
      const auto is_split = [&](const DTensorSpec& result) { return !result.placements[m].is_replicate(); };
      const bool contributes = std::any_of(results_.begin(), results_.end(), is_split);
      if (!gradient[m].is_shard()) gradient[m] = contributes && gradient[m].is_replicate() ? Partial() : Replicate();
    }
    return unwrap_local(args_[arg], gradient);
  }

  Tensor written() const {
    args_[0].bump_version();
    return args_[0];
  }

  Tensor wrapped(const Tensor& local, size_t result) const {
    return wrap_local(local,
                      results_.empty() ? DTensorSpec{mesh_, replicated_, DimVector(local.sizes())} : results_[result]);
  }

  const OpBase& op_;
  Stack& stack_;
  const DeviceMesh mesh_;
  const Placements replicated_;
  const bool writes_;
  std::vector<DTensor> args_;
  std::vector<Placements> given_;
  CallPlacements placed_;
  std::vector<DTensorSpec> results_;  // empty where all is replicated
};

void serve(const OpBase& op, KeySet keys, Stack& stack) {
  const DTensorState* state = first_state(stack);
  if (!state) return op.call_boxed(stack, dtensor_key());
  RUSH_CHECK_NOT_IMPLEMENTED(!keys.has(DispatchKey::Tracer), op.name(), ": DTensors cannot be traced and compiled");
  if (compute_by_others(op, stack)) return;
  const Rule* rule = rule_of(op, stack);
  if (!rule && op.is_composite()) return op.call_boxed(stack, dtensor_key());  // the calls that it is made of stop here
  DTensorCall(op, stack, state->spec.mesh).run(rule);
}

}  // namespace

DispatchKey dtensor_key() {
  static const DispatchKey key = [] {
    const DispatchKey taken = registry().take_key("DTensor");
    registry().fallback(taken, serve);
    const std::atomic_ref watchers(watching);
    watchers.store(watchers.load() | taken);
    return taken;
  }();
  return key;
}

}  // namespace rush::nn::parallel::detail
