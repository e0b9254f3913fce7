#include "autograd/function.h"

#include <algorithm>

#include "autograd/inplace.h"
#include "core/ops/factory/factories.h"

namespace rush::autograd {

namespace {
// The number in `value`, if it is one of the types T.
template <class... T>
std::optional<Scalar> number_of(const std::any& value) {
  std::optional<Scalar> number;
  const auto take = [&](const auto* held) {
    if (held) number = Scalar(*held);
  };
  (take(std::any_cast<T>(&value)), ...);
  return number;
}

template <class T>
bool take_elements(const std::any& value, std::vector<SavedValue>& elements) {
  const auto* list = std::any_cast<std::vector<T>>(&value);
  if (list) elements.assign(list->begin(), list->end());
  return list != nullptr;
}
}  // namespace

Scalar SavedValue::to_number() const {
  const auto number = number_of<double, float, int64_t, int, size_t, bool, Scalar>(*this);
  RUSH_CHECK_TYPE(number, "saved_data: expected a number, something else was saved");
  return *number;
}

std::vector<SavedValue> SavedValue::toList() const {
  std::vector<SavedValue> elements;
  const bool is_list = take_elements<int64_t>(*this, elements) || take_elements<double>(*this, elements) ||
                       take_elements<Tensor>(*this, elements);
  RUSH_CHECK_TYPE(is_list, "saved_data: expected a list, something else was saved");
  return elements;
}

}  // namespace rush::autograd

namespace rush::autograd::detail {

Tensor zeros_for(const GradMetadata& output) {
  return zeros(output.sizes, TensorOptions(output.dtype).device(output.device));
}

void add_argument(Node& node, std::vector<bool>& is_tensor, const Tensor& argument) {
  is_tensor.push_back(true);
  node.add_next_edge(argument.defined() ? gradient_edge(argument) : Edge());
}

void drop_undefined_tail(Tensors& grads, size_t count) {
  while (grads.size() > count && !grads.back().defined()) grads.pop_back();
}

static bool is_among(const Tensor& tensor, const Tensors& list) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& t) { return t.is_same(tensor); });
}

void record_outputs(Tensors& outputs, const Tensors& non_differentiable, const Tensors& dirty,
                    const intrusive_ptr<Node>& node) {
  for (const Tensor& input : dirty) {
    RUSH_CHECK(is_among(input, outputs), node->name(),
               ": Some elements marked as dirty during the forward method were not returned as output; return every "
               "input that mark_dirty names");
    input.bump_version();  // whatever wrote it
  }
  for (Tensor& output : outputs) {
    const bool skip = is_among(output, non_differentiable);
    if (is_among(output, dirty) && !skip) {
      check_inplace(output, node->name());
      RUSH_CHECK(!output.is_view() || outputs.size() == 1, node->name(),
                 ": a view that is written in place must be the only output");
      rebase_history(output, node);
      continue;
    }
    if (skip || !output.defined()) {
      // It keeps its number among the outputs, and no gradient ever arrives for it.
      node->add_output(output.defined() ? output : empty({0}));
      continue;
    }
    // An input returned as it is must keep its own history, and so must one of which a view is returned.
    const bool is_of_input = output.requires_grad();
    if (is_of_input) output = rush::detail::make_alias(output);
    output.impl()->set_view(nullptr, is_of_input ? ViewOrigin::Function : ViewOrigin::None);
    set_history(output, node);
  }
}

static AutocastState state_in_forward(const CustomAutocast& custom) {
  AutocastState state = dispatch_state.autocast;
  if (custom.cast_inputs) state.devices = 0;
  return state;
}

ForwardAutocast::ForwardAutocast(const CustomAutocast& custom, AutocastState& ran_in)
    : cast_inputs_(custom.cast_inputs), around_(dispatch_state.autocast), state_(ran_in = state_in_forward(custom)) {}

Tensor ForwardAutocast::cast(const Tensor& argument) const {
  if (!cast_inputs_ || !argument.defined()) return argument;
  const DeviceType device = argument.device().type;
  const bool casts = autocast::is_autocast_enabled(device, around_) && autocast::is_eligible(argument, device);
  return casts ? argument.to(*cast_inputs_) : argument;
}

}  // namespace rush::autograd::detail
