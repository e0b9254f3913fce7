// transpose_, t_, squeeze_, unsqueeze_: a tensor becomes a view of itself.
#include "autograd/grad_mode.h"
#include "autograd/inplace.h"
#include "autograd/meta.h"
#include "core/ops/view/view.h"

namespace rush {

namespace {

// Gives `self` the geometry of `change(self)`, a view of it, and its history where it is recorded. The version counts,
// so that a tensor saved before is noticed.
template <class Change>
Tensor& become(Tensor& self, const char* op, const Change& change) {
  RUSH_CHECK(self.defined(), op, ": expected a tensor, got an undefined one");
  TensorImpl& impl = *self.impl();
  if (impl.layout() != kStrided) impl.throw_sparse(op);
  const bool recorded = GradMode::is_enabled() && self.requires_grad();
  if (recorded) check_inplace(self, op);
  Tensor before = detail::make_alias(self);
  if (recorded && !self.is_view()) {
    const Edge edge = gradient_edge(self);
    AutogradMeta& meta = need_meta(before);
    meta.grad_fn = edge.node;
    meta.output_nr = edge.slot;
    before.impl()->set_requires_autograd(true);
  }
  const Tensor after = change(before);
  if (before.requires_grad()) {
    AutogradMeta& meta = need_meta(self);
    meta.grad_fn = after.grad_fn();
    meta.output_nr = static_cast<uint32_t>(after.output_nr());
    if (meta.retained) keep_gradient(meta);
  }
  // A view asks its base again: see Note [Views and in-place writes].
  impl.set_geometry(after.sizes(), after.strides(), after.storage_offset());
  self.bump_version();
  return self;
}

}  // namespace

Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const {
  return become(self(), "transpose_", [=](const Tensor& t) { return t.transpose(dim0, dim1); });
}
Tensor& Tensor::t_() const {
  return become(self(), "t_", [](const Tensor& t) { return t.t(); });
}
Tensor& Tensor::squeeze_(OptionalIntArrayRef dim) const {
  return become(self(), "squeeze_", [=](const Tensor& t) { return dim ? t.squeeze(*dim) : t.squeeze(); });
}
Tensor& Tensor::unsqueeze_(int64_t dim) const {
  return become(self(), "unsqueeze_", [=](const Tensor& t) { return t.unsqueeze(dim); });
}
const Tensor& Tensor::as_strided_(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) const {
  return become(self(), "as_strided_", [=](const Tensor& t) { return t.as_strided(size, stride, offset); });
}

}  // namespace rush
