#include "autograd/saved.h"

#include "autograd/debug/anomaly.h"
#include "autograd/meta.h"
#include "autograd/saved_tensors_hooks.h"
#include "core/memory/claim.h"

namespace rush {

namespace {

std::shared_ptr<const PackedTensor> pack(const Tensor& tensor, Edge edge) {
  return std::make_shared<const PackedTensor>(*autograd::SavedTensorsHooks::current(), tensor, std::move(edge));
}

// Unless hooks keep something else in its place.
void claim_activation(const Tensor& tensor) {
  if (!autograd::SavedTensorsHooks::current()) detail::claim_memory(tensor, MemoryUse::Activation);
}

// `tensor` as what an edge's node computed.
Tensor with_history(const Tensor& tensor, const Edge& edge) {
  Tensor recorded = detail::make_alias(tensor);
  AutogradMeta& meta = need_meta(recorded);
  meta.grad_fn = edge.node;
  meta.output_nr = edge.slot;
  meta.version = static_cast<uint32_t>(tensor._version());
  recorded.impl()->set_requires_autograd(true);
  return recorded;
}

}  // namespace

Saved::Saved(const Tensor& input) {
  if (!input.defined()) return;
  RUSH_CHECK(!input.is_inference(), "Inference tensors cannot be saved for backward; clone it first");
  version_ = static_cast<uint32_t>(input._version());
  claim_activation(input);
  if (autograd::SavedTensorsHooks::current()) {
    packed_ = pack(input, gradient_edge(input));
  } else {
    tensor_ = input;
  }
}

Saved Saved::output(const Tensor& output, Node* node) {
  Saved saved;
  if (!output.defined()) return saved;
  const AutogradMeta* meta = get_meta(output);
  // A view written in place has its history in its base; `node` is then its function all the same.
  const bool recorded = meta && (meta->grad_fn.get() == node || output.is_view());
  saved.node_ = recorded ? node : nullptr;
  saved.slot_ = meta && meta->grad_fn.get() == node ? meta->output_nr : 0;
  saved.version_ = static_cast<uint32_t>(output._version());
  claim_activation(output);
  if (autograd::SavedTensorsHooks::current()) {
    saved.packed_ = pack(output, Edge());
  } else {
    saved.tensor_ = recorded ? detail::make_alias(output) : output;
  }
  return saved;
}

Tensor Saved::get() const {
  RUSH_CHECK(!released_,
             "backward: Trying to backward through the graph a second time, which the first freed; pass "
             "retain_graph=true to go through it again");
  if (!defined()) return {};
  const Edge made_by = node_ ? Edge{intrusive_ptr<Node>::share(node_), slot_} : packed_ ? packed_->edge : Edge();
  if (packed_) return made_by.valid() ? with_history(packed_->unpack(), made_by) : packed_->unpack();
  const auto now = static_cast<uint32_t>(tensor_._version());
  RUSH_CHECK(
      now == version_, "backward: a tensor of sizes ", tensor_.sizes(), " that ",
      current_node ? current_node->name() : "the gradient",
      " needs has been modified by an inplace operation: it is at version ", now, ", expected version ", version_,
      autograd::AnomalyMode::is_enabled() ? "" : "; with DetectAnomalyGuard the error names the call that saved it");
  return made_by.valid() ? with_history(tensor_, made_by) : tensor_;
}

void Saved::release() {
  tensor_.reset();
  packed_.reset();
  node_ = nullptr;
  released_ = true;
}

Tensors SavedList::get() const {
  Tensors tensors;
  for (const Saved& saved : saved_) tensors.push_back(saved.get());
  return tensors;
}

}  // namespace rush
