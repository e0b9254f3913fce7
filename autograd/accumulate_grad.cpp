#include "autograd/accumulate_grad.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/memory/claim.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/sparse/sparse_parts.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace {

// In channels_last where the leaf is, as what reads both, such as an optimiser, has it cheapest.
Tensor copy_for(const Tensor& leaf, const Tensor& grad) {
  const MemoryFormat format = leaf.suggest_memory_format();
  return grad.clone(format == MemoryFormat::Contiguous ? MemoryFormat::Preserve : format);
}

// Whether nobody else can see a gradient that the engine hands over: it need not be copied. One that is expanded, or
// shared with another leaf, must be.
bool is_own(const Tensor& grad) {
  if (grad.use_count() > 2 || grad.storage().use_count() != 1) return false;
  if (grad.layout() == kStrided) return grad.is_non_overlapping_and_dense();
  return native::stored_values(grad).storage().use_count() == 1;
}

}  // namespace

// Numbered 0: it runs after all nodes that feed it, so a leaf's hooks see the whole gradient once.
AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node(0), variable(leaf) { add_output(leaf); }

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta* meta = get_meta(variable);
  const std::lock_guard lock(meta->accumulator_mutex);
  if (meta->accumulator == this) meta->accumulator = nullptr;
}

Tensors AccumulateGrad::apply(const Tensors& grads) {
  const Tensor grad = grads[0];
  if (!grad.defined() || !variable.requires_grad()) return {};  // it may have been frozen since
  const std::lock_guard lock(mutex_);
  Tensor& total = variable.mutable_grad();
  check_gradient(grad, variable, "backward: a gradient that was computed");
  if (total.defined()) check_gradient(total, variable, "backward: the gradient that there is, and would be added to,");
  if (!total.defined()) {
    const bool own = !GradMode::is_enabled() && is_own(grad);
    total = own ? grad.detach() : copy_for(variable, GradMode::is_enabled() ? grad : grad.detach());
  } else if (GradMode::is_enabled() || (total.layout() != kStrided && grad.layout() == kStrided)) {
    total = total + grad;  // dense, where one of them is
  } else {
    total.add_(grad);
  }
  detail::claim_memory(total, MemoryUse::Gradient);
  return {};
}

namespace {

// Whether the leaf is what it was when the accumulator was made: set_data may have changed it.
bool is_current(const Node& accumulator, const Tensor& leaf) {
  const GradMetadata& made_for = accumulator.output_metadata(0);
  return leaf.sizes() == IntArrayRef(made_for.sizes) && leaf.scalar_type() == made_for.dtype &&
         leaf.device() == made_for.device;
}

}  // namespace

intrusive_ptr<Node> grad_accumulator(const Tensor& leaf) {
  AutogradMeta& meta = need_meta(leaf);
  const std::lock_guard lock(meta.accumulator_mutex);
  // A node that is about to be deleted has no owner, and cannot be revived.
  if (meta.accumulator && is_current(*meta.accumulator, leaf)) {
    if (auto alive = intrusive_ptr<Node>::try_share(meta.accumulator)) return alive;
  }
  auto accumulator = make_intrusive<AccumulateGrad>(leaf);
  meta.accumulator = accumulator.get();
  return accumulator;
}

Tensor gradient_values(const Tensor& leaf) {
  Tensor& grad = leaf.mutable_grad();
  if (grad.layout() == kStrided) return grad;
  const NoGradGuard no_grad;
  if (grad.is_sparse()) grad = grad.coalesce();
  return grad._values();
}

}  // namespace rush
