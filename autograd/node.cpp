#include "autograd/node.h"

#include <typeinfo>

#include "autograd/accumulate_grad.h"
#include "autograd/inplace.h"
#include "autograd/meta.h"
#include "autograd/saved.h"
#include "core/debug/stack_trace.h"

namespace rush {

uint64_t Node::next_sequence_nr() {
  // One count for all threads: a node may consume what another thread made.
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Node::~Node() = default;

std::string Node::name() const {
  const std::string full = demangle(typeid(*this).name());
  const size_t colon = full.rfind("::", full.find('<'));  // not within the brackets of a template
  return colon == full.npos ? full : full.substr(colon + 2);
}

void Node::release_saved() {
  struct Releaser final : SavedVisitor {
    void visit(const char*, Saved& saved) override { saved.release(); }
  } releaser;
  visit_saved(releaser);
}

uint32_t Node::add_output(const Tensor& output) {
  const Device device = output.device();
  outputs_.push_back({DimVector(output.sizes()), output.scalar_type(), device});
  if (RUSH_UNLIKELY(device.is_accelerator()) && !stream_.is_queue()) stream_ = current_stream(device);
  return static_cast<uint32_t>(outputs_.size() - 1);
}

// Deleting a node drops its edges and saved tensors, which may be the last owners of further nodes. Those wait in a
// list until the first deletion is done, so the stack does not grow with the graph.
void Node::destroy() {
  static thread_local constinit Node* waiting = nullptr;
  static thread_local constinit bool deleting = false;
  next_destroyed_ = waiting;
  waiting = this;
  if (deleting) return;
  deleting = true;
  while (Node* node = waiting) {
    waiting = node->next_destroyed_;
    delete node;
  }
  deleting = false;
}

AutogradMeta& need_meta(const Tensor& tensor) {
  if (!get_meta(tensor)) tensor.impl()->set_autograd_meta(std::make_unique<AutogradMeta>());
  return *get_meta(tensor);
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.requires_grad() || tensor.is_inference()) return {};
  refresh_view(tensor);
  AutogradMeta* meta = get_meta(tensor);
  if (meta && meta->grad_fn) return {meta->grad_fn, meta->output_nr};
  const bool own = meta && meta->requires_grad;
  if (!own && tensor.impl()->view_origin() == ViewOrigin::NoGrad) return {};
  return {grad_accumulator(tensor), 0};
}

void set_history(const Tensor& output, const intrusive_ptr<Node>& node) {
  if (!output.defined()) {
    node->add_output(Tensor(make_intrusive<TensorImpl>(nullptr, kFloat32, Device())));
    return;
  }
  const uint32_t slot = node->add_output(output);
  if (!is_differentiable(output.scalar_type())) return;
  RUSH_CHECK(!output.is_inference(), node->name(), ": an inference tensor cannot be recorded");
  AutogradMeta& meta = need_meta(output);
  meta.grad_fn = node;
  meta.output_nr = slot;
  meta.version = static_cast<uint32_t>(output._version());
  if (RUSH_UNLIKELY(meta.retained)) keep_gradient(meta);
  output.impl()->set_requires_autograd(true);
}

}  // namespace rush
