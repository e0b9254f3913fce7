// The fallback by which operators compute on DTensors: Note [Distributed tensors].
#include <algorithm>
#include <atomic>
#include <cstring>

#include "autograd/grad_mode.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/parallel/dtensor_parts.h"
#include "nn/parallel/dtensor_rules.h"
#include "nn/parallel/redistribute.h"

namespace rush::nn::parallel::detail {

namespace {

using distributed::DeviceMesh;

// The state of the first DTensor of a call; null where there is none.
const DTensorState* first_state(const Stack& stack) {
  const auto find = [](const auto& tensors) -> const DTensorState* {
    for (const auto& each : tensors) {
      if (const DTensorState* state = dtensor_state(std::optional<Tensor>(each).value_or(Tensor()))) return state;
    }
    return nullptr;
  };
  for (const Value& value : stack) {
    const DTensorState* state = nullptr;
    if (value.is<Tensor>()) state = dtensor_state(value.as<Tensor>());
    if (value.is<std::vector<Tensor>>()) state = find(value.as<std::vector<Tensor>>());
    if (value.is<std::vector<std::optional<Tensor>>>()) state = find(value.as<std::vector<std::optional<Tensor>>>());
    if (state) return state;
  }
  return nullptr;
}

// The defined tensors of the values, one after the other.
std::vector<Tensor> all_tensors(const Stack& stack) {
  std::vector<Tensor> all;
  for (const Value& value : stack) {
    for (Tensor& each : tensors_of(value)) {
      if (each.defined()) all.push_back(std::move(each));
    }
  }
  return all;
}

// Puts others in their places.
template <class Next>
void replace_tensors(Stack& stack, const Next& next) {
  for (Value& value : stack) {
    std::vector<Tensor> tensors = tensors_of(value);
    for (Tensor& each : tensors) {
      if (each.defined()) each = next(each);
    }
    if (!tensors.empty()) value = with_tensors(value, std::move(tensors));
  }
}

// A number, which every process has as it is.
bool is_number(const Tensor& tensor) { return tensor.dim() == 0 && !DTensor::is_dtensor(tensor); }

// Indices and masks that a forward pass makes are the same on all processes; data may differ, and have to be
// distributed.
Tensor as_dtensor(const OpBase& op, const Tensor& tensor, const DeviceMesh& mesh) {
  if (const DTensorState* state = dtensor_state(tensor)) {
    RUSH_CHECK_VALUE(state->mesh == mesh, op.name(), ": its DTensors are on different meshes, ", mesh.str(), " and ",
                     state->mesh.str());
    return tensor;
  }
  if (is_number(tensor)) return tensor;
  RUSH_CHECK_TYPE(!tensor.is_floating_point() && !tensor.is_complex(), op.name(),
                  ": got a DTensor and a plain tensor of ", tensor.scalar_type(), " and sizes ", tensor.sizes(),
                  "; distribute_tensor or DTensor::from_local makes a DTensor of it");
  return wrap_local(tensor, mesh, all_replicated(mesh), tensor.sizes());
}

std::vector<Placements> placements_of(const std::vector<Tensor>& tensors, const DeviceMesh& mesh) {
  std::vector<Placements> all;
  for (const Tensor& each : tensors) {
    const DTensorState* state = dtensor_state(each);
    all.push_back(state ? state->placements : all_replicated(mesh));
  }
  return all;
}

// The results of the call on meta: they have the sizes of the whole.
Stack results_on_meta(const OpBase& op, Stack stack) {
  const DispatchStateGuard plain(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast);
  replace_tensors(stack,
                  [](const Tensor& t) { return empty(t.sizes(), TensorOptions(t.scalar_type()).device(kMeta)); });
  for (Value& value : stack) {
    if (value.is<Device>()) value = Device(kMeta);
  }
  op.call_boxed(stack);
  return stack;
}

// One call on DTensors of a mesh.
class DTensorCall {
 public:
  DTensorCall(const OpBase& op, Stack& stack, const DeviceMesh& mesh) : op_(op), stack_(stack), mesh_(mesh) {
    replace_tensors(stack_, [&](const Tensor& each) { return as_dtensor(op_, each, mesh_); });
    args_ = all_tensors(stack_);
    given_ = placements_of(args_, mesh_);
    writes_ = std::strstr(op_.schema(), "(a!)") != nullptr;
  }

  void run() {
    check_writes();
    place(rule_of(op_, stack_));
    const DispatchStateGuard plain{KeySet(dtensor_key())};
    const Tensor written = writes_ ? args_[0] : Tensor();
    to_locals();
    // A local tensor may have other strides than the whole.
    const OpBase& op = &op_ == &ops::view ? static_cast<const OpBase&>(ops::reshape) : op_;
    op.call_boxed(stack_);
    if (writes_) {
      written.bump_version();
      stack_[0] = written;
    } else {
      from_locals();
    }
  }

 private:
  void check_writes() const {
    const auto is_recorded = [](const Tensor& t) { return t.requires_grad(); };
    RUSH_CHECK_NOT_IMPLEMENTED(
        !writes_ || !GradMode::is_enabled() || std::none_of(args_.begin(), args_.end(), is_recorded), op_.name(),
        ": DTensors are written in place under NoGradGuard only; call ", "the operator that returns a new one");
  }

  // Chooses placements, and redistributes the arguments.
  void place(const Rule* rule) {
    const auto replicated = all_replicated(mesh_);
    const auto is_replicated = [&](const Placements& each) { return each == replicated; };
    placed_.args.assign(args_.size(), replicated);
    if (std::all_of(given_.begin(), given_.end(), is_replicated)) return;
    if (!rule) throw_no_rule();
    if (rule->names) choose(*rule);
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!is_number(args_[i])) args_[i] = DTensor(args_[i]).redistribute(placed_.args[i]);
    }
  }

  void choose(const Rule& rule) {
    const DispatchStateGuard plain{KeySet(dtensor_key())};
    const Stack results = writes_ ? Stack{args_[0]} : results_on_meta(op_, stack_);
    const TensorOptions on_meta = TensorOptions().device(kMeta);
    std::vector<Tensor> whole_args, whole_results;
    for (const Tensor& each : args_) whole_args.push_back(empty(each.sizes(), on_meta));
    for (const Tensor& each : all_tensors(results)) {
      whole_results.push_back(writes_ ? whole_args[0] : each);
      sizes_.emplace_back(each.sizes());
    }
    std::vector<bool> fixed;
    for (const Tensor& each : args_) fixed.push_back(is_number(each) || (writes_ && fixed.empty()));
    auto chosen = choose_placements(rule, {stack_, whole_args, whole_results}, given_, fixed, mesh_);
    if (!chosen) throw_no_rule();
    placed_ = std::move(*chosen);
    if (rule.size_list > 0) {
      const DimVector local = local_sizes(sizes_[0], mesh_, placed_.results[0]);
      stack_[rule.size_list] = std::vector<int64_t>(local.begin(), local.end());
    }
  }

  [[noreturn]] void throw_no_rule() const {
    std::string all;
    for (const Placements& each : given_) all += str(all.empty() ? "" : ", ", each);
    RUSH_THROW(NotImplementedError, op_.name(), ": there is no rule for DTensors placed ", all,
               "; every operator computes on replicated ones: DTensor::redistribute");
  }

  // How the gradient of an argument's local tensor lies: Note [Gradients of distributed tensors].
  Placements gradient_of(size_t arg) const {
    Placements gradient = placed_.args[arg];
    for (size_t m = 0; m < gradient.size(); ++m) {
      const auto is_split = [&](const Placements& result) { return !result[m].is_replicate(); };
      const bool computes_alike = std::none_of(placed_.results.begin(), placed_.results.end(), is_split);
      if (!gradient[m].is_shard()) gradient[m] = gradient[m].is_partial() || computes_alike ? Replicate() : Partial();
    }
    return gradient;
  }

  void to_locals() {
    size_t i = 0;
    replace_tensors(stack_, [&](const Tensor&) {
      const size_t arg = i++;
      if (is_number(args_[arg])) return args_[arg];
      return writes_ ? dtensor_state(args_[arg])->local : unwrap_local(args_[arg], gradient_of(arg));
    });
  }

  void from_locals() {
    size_t i = 0;
    replace_tensors(stack_, [&](const Tensor& local) {
      const size_t result = i++;
      if (result >= sizes_.size()) return wrap_local(local, mesh_, all_replicated(mesh_), local.sizes());
      return wrap_local(local, mesh_, placed_.results[result], sizes_[result]);
    });
  }

  const OpBase& op_;
  Stack& stack_;
  const DeviceMesh mesh_;
  std::vector<Tensor> args_;  // DTensors, and numbers
  std::vector<Placements> given_;
  CallPlacements placed_;
  std::vector<DimVector> sizes_;  // of results, where they are not all replicated
  bool writes_ = false;
};

// Whether the operator takes lists that go together element by element.
bool is_on_lists(const OpBase& op) { return op.name().starts_with("aten::_foreach_") || op.name().ends_with("_step_"); }

// Each tensor of the first list brings those with the same index in the others to its placements.
void run_on_lists(const OpBase& op, Stack& stack, const DeviceMesh& mesh) {
  const std::vector<Tensor> lead = tensors_of(stack[0]);
  for (const Tensor& each : lead) {
    const DTensorState* state = dtensor_state(each);
    RUSH_CHECK_NOT_IMPLEMENTED(state && std::none_of(state->placements.begin(), state->placements.end(),
                                                     [](const Placement& p) { return p.is_partial(); }),
                               op.name(), ": takes lists of DTensors that are sharded or replicated");
  }
  const DispatchStateGuard plain{KeySet(dtensor_key())};
  for (Value& value : stack) {
    std::vector<Tensor> tensors = tensors_of(value);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!DTensor::is_dtensor(tensors[i])) continue;
      const bool goes_along = tensors.size() == lead.size() && tensors[i].sizes() == lead[i].sizes();
      const DTensor placed =
          DTensor(tensors[i]).redistribute(goes_along ? DTensor(lead[i]).placements() : all_replicated(mesh));
      tensors[i] = dtensor_state(placed)->local;
    }
    if (!tensors.empty()) value = with_tensors(value, std::move(tensors));
  }
  op.call_boxed(stack);
  size_t i = 0;
  replace_tensors(stack, [&](const Tensor& local) {
    const Tensor& like = lead[i++ % lead.size()];
    return wrap_local(local, mesh, DTensor(like).placements(), like.sizes());
  });
}

void serve(const OpBase& op, KeySet, Stack& stack) {
  const DTensorState* state = first_state(stack);
  if (!state) return op.call_boxed(stack, dtensor_key());
  if (compute_by_others(op, stack)) return;
  const bool by_its_own_calls = op.is_composite() && !rule_of(op, stack);
  if (by_its_own_calls) return op.call_boxed(stack, dtensor_key());
  if (is_on_lists(op)) return run_on_lists(op, stack, DeviceMesh(state->mesh));
  DTensorCall(op, stack, state->mesh).run();
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
