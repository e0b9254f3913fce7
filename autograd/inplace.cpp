#include "autograd/inplace.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/saved_tensors_hooks.h"
#include "core/dispatch/schema.h"
#include "core/ops/basic.h"

namespace rush {

// Note [Views and in-place writes]
// Writing a view changes its base, and so every other view. The base's history is rebased on a CopySlices node, which
// routes the part of the gradient under the view through the in-place operator's node. The histories of views are
// brought up to date only when they are asked for: a view remembers the storage's version at which its grad_fn was
// made, and when that is no longer current, a new function of the view is made, as a strided view of the base as it is
// now.

namespace {

// The geometry of a view within its base's storage.
struct ViewGeometry : detail::Geometry {
  ScalarType dtype;
  explicit ViewGeometry(const Tensor& t) : Geometry(native::geometry_of(t)), dtype(t.scalar_type()) {}

  // The view of `base`, or of a tensor like it that lies `shift` elements further on in its own storage. The view may
  // see complex numbers as pairs of real ones, or the other way round.
  Tensor of(const Tensor& base, int64_t shift = 0) const {
    if (base.scalar_type() == dtype) return base.as_strided(sizes, strides, offset + shift);
    if (base.is_complex()) return view_as_real(base).as_strided(sizes, strides, offset + 2 * shift);
    DimVector pair_sizes(sizes), pair_strides(strides);
    for (int64_t& stride : pair_strides) stride *= 2;
    pair_sizes.push_back(2);
    pair_strides.push_back(1);
    return view_as_complex(base.as_strided(pair_sizes, pair_strides, 2 * offset + shift));
  }
};

// The gradient of a strided view: zeros of the base, with the view's gradient at its place. The gradient is computed
// for a base of any layout by scattering into the storage's range.
struct CopySlices final : Node {
  ViewGeometry base, view;
  intrusive_ptr<Node> function;  // of the in-place operator; its edge 0 leads to the view as it was

  CopySlices(const Tensor& base_tensor, const Tensor& view_tensor, intrusive_ptr<Node> function)
      : base(base_tensor), view(view_tensor), function(std::move(function)) {
    // The base as it was takes the gradient of all that the view does not cover.
    add_next_edge(gradient_edge(base_tensor));
    const auto& edges = this->function->next_edges();
    for (size_t i = 1; i < edges.size(); ++i) add_next_edge(edges[i]);
    set_forward_call(this->function->forward_call());
  }

  Tensors apply(const Tensors& grads) override {
    RUSH_CHECK(function,
               "backward: Trying to backward through the graph a second time, which the first freed; pass "
               "retain_graph=true to go through it again");
    // A clone in the base's own layout, so that the view's geometry fits it.
    Tensor grad =
        empty_strided(base.sizes, base.strides, TensorOptions(grads[0].scalar_type()).device(grads[0].device()));
    grad.copy_(grads[0]);
    const Tensor under = view.of(grad, -base.offset);
    Tensors results = function->apply({under.clone()});
    Tensors out(next_edges().size());
    for (size_t i = 1; i < results.size() && i < out.size(); ++i) out[i] = results[i];
    if (needs(0)) {
      // What the view's old value contributed; nothing when the operator overwrote it.
      if (!results.empty() && results[0].defined()) {
        under.copy_(results[0]);
      } else {
        under.zero_();
      }
      out[0] = grad;
    }
    return out;
  }
  void visit_saved(SavedVisitor& visitor) override {
    if (function) function->visit_saved(visitor);
  }
  void release_saved() override {
    if (function) function->release_saved();
    function.reset();
  }
};

}  // namespace

void check_inplace(const Tensor& tensor, std::string_view name) {
  if (!GradMode::is_enabled()) return;
  const std::string_view op = short_name(name);
  RUSH_CHECK(tensor.defined(), op, ": expected a tensor to write in place, got an undefined one");
  const TensorImpl* impl = tensor.impl();
  RUSH_CHECK(impl->view_origin() != ViewOrigin::NoGrad, op,
             ": a view that was made without recording is written in place while recording");
  const TensorImpl* whole = impl->view_base() ? impl->view_base().get() : impl;
  RUSH_CHECK(whole->view_origin() != ViewOrigin::Function, op,
             ": an input that a Function returned, or a view of one, is written in place, which its backward would not "
             "know of; clone it first");
  if (impl->view_base()) {
    RUSH_CHECK(impl->view_origin() != ViewOrigin::MultiOutput, op,
               ": the output of an operator that returns several views is written in place; clone it first");
    const Tensor base(impl->view_base());
    RUSH_CHECK(!(tensor.requires_grad() && base.is_leaf()), op,
               ": a view of a leaf Variable that requires grad is being used in an in-place operation; use NoGradGuard "
               "to update it");
  } else {
    RUSH_CHECK(
        !(tensor.requires_grad() && tensor.is_leaf()), op,
        ": a leaf Variable that requires grad is being used in an in-place operation; use NoGradGuard to update it");
  }
}

void rebase_history(Tensor& tensor, const intrusive_ptr<Node>& node) {
  if (!tensor.is_view()) return set_history(tensor, node);
  const Tensor base(tensor.impl()->view_base());
  // `node` is driven by CopySlices; the engine never sees it.
  node->add_output(tensor);
  set_history(base, make_intrusive<CopySlices>(base, tensor, node));
  // Its version is behind the base's now, so a new function of the view is made when it is needed.
  AutogradMeta& meta = need_meta(tensor);
  meta.grad_fn.reset();
  tensor.impl()->set_requires_autograd(true);
  meta.version = static_cast<uint32_t>(tensor._version()) - 1;
}

void refresh_view(const Tensor& tensor) {
  if (!tensor.is_view()) return;
  const Tensor base(tensor.impl()->view_base());
  if (!base.requires_grad()) return;
  AutogradMeta& meta = need_meta(tensor);
  const auto now = static_cast<uint32_t>(tensor._version());
  if (meta.grad_fn && meta.version == now) return;
  const EnableGradGuard recording;
  const Tensor again = ViewGeometry(tensor).of(base);
  AutogradMeta* made = get_meta(again);
  meta.grad_fn = made->grad_fn;
  meta.output_nr = made->output_nr;
  meta.version = now;
  if (meta.retained) keep_gradient(meta);
  tensor.impl()->set_requires_autograd(true);
}

namespace {

void give_own_memory(Tensor& alias) {
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  // A trace is to note the copy, which later calls read.
  const bool is_plain = alias.layout() == kStrided && !dispatch_state.included.has(DispatchKey::Tracer);
  const Tensor copy = is_plain ? native::clone_contiguous(alias) : detail::make_alias(alias).clone();
  copy.storage()->set_version(static_cast<uint32_t>(alias._version()));
  if (alias.layout() != kStrided) return alias.impl()->set_data_of(*copy.impl());
  alias.impl()->set_storage(copy.storage());
  alias.impl()->set_geometry(copy.sizes(), copy.strides(), 0);
}

}  // namespace

Tensor alias_for_saving(const Tensor& target) {
  Tensor alias = detail::make_alias(target);
  if (target.requires_grad()) {
    const Edge edge = gradient_edge(target);
    AutogradMeta& meta = need_meta(alias);
    meta.grad_fn = edge.node;
    meta.output_nr = edge.slot;
    alias.impl()->set_requires_autograd(true);
  }
  // Whether hooks will keep the value, and whether in this memory, cannot be seen afterwards.
  if (autograd::SavedTensorsHooks::current()) give_own_memory(alias);
  return alias;
}

void preserve_if_saved(Tensor& alias) {
  if (alias.use_count() > 1) give_own_memory(alias);
}

}  // namespace rush
