#include "autograd/saved.h"

#include "autograd/meta.h"

namespace rush {

Saved::Saved(const Tensor& input) : tensor_(input) {
  if (!input.defined()) return;
  RUSH_CHECK(!input.is_inference(), "an inference tensor cannot be saved for the backward pass; clone it first");
  version_ = static_cast<uint32_t>(input._version());
}

Saved Saved::output(const Tensor& output, Node* node) {
  Saved saved;
  if (!output.defined()) return saved;
  const AutogradMeta* meta = get_meta(output);
  // A view written in place has its history in its base; `node` is then its function all the same.
  const bool recorded = meta && (meta->grad_fn.get() == node || output.is_view());
  saved.tensor_ = recorded ? detail::make_alias(output) : output;
  saved.node_ = recorded ? node : nullptr;
  saved.slot_ = meta && meta->grad_fn.get() == node ? meta->output_nr : 0;
  saved.version_ = static_cast<uint32_t>(output._version());
  return saved;
}

Tensor Saved::get() const {
  RUSH_CHECK(
      !released_,
      "backward: the graph was freed by an earlier backward pass; pass retain_graph=true to go through it again");
  if (!tensor_.defined()) return {};
  const auto now = static_cast<uint32_t>(tensor_._version());
  RUSH_CHECK(now == version_, "backward: a tensor of sizes ", tensor_.sizes(), " that ",
             current_node ? current_node->name() : "the gradient", " needs was modified in place: it is at version ",
             now, ", expected version ", version_);
  if (!node_) return tensor_;
  Tensor output = detail::make_alias(tensor_);
  AutogradMeta& meta = need_meta(output);
  meta.grad_fn = intrusive_ptr<Node>::share(node_);
  meta.output_nr = slot_;
  meta.version = version_;
  output.impl()->set_requires_autograd(true);
  return output;
}

void Saved::release() {
  tensor_.reset();
  node_ = nullptr;
  released_ = true;
}

Tensors SavedList::get() const {
  Tensors tensors;
  for (const Saved& saved : saved_) tensors.push_back(saved.get());
  return tensors;
}

}  // namespace rush
