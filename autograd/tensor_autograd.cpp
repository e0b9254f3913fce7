// The autograd methods of Tensor.
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "autograd/inplace.h"
#include "autograd/meta.h"
#include "core/error/warning.h"
#include "core/memory/claim.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/copy.h"

namespace rush {

const Tensor& Tensor::requires_grad_(bool requires_grad) const {
  RUSH_CHECK(!requires_grad || rush::is_differentiable(scalar_type()),
             "requires_grad_: Only Tensors of floating point and complex dtype can require gradients, this is ",
             scalar_type());
  RUSH_CHECK(!requires_grad || !is_inference() || InferenceMode::is_enabled(),
             "requires_grad_: an inference tensor cannot require gradients outside InferenceMode; clone it first");
  const bool of_base = checked().view_origin() == ViewOrigin::NoGrad;  // it may require one for its base's sake
  if (requires_grad == this->requires_grad() && !of_base) return *this;
  RUSH_CHECK(is_leaf(), "requires_grad_: only leaves can be changed; use detach() to get one");
  need_meta(*this).requires_grad = requires_grad;
  impl_->set_requires_autograd(requires_grad);
  return *this;
}

Tensor& Tensor::set_requires_grad(bool requires_grad) const {
  if (is_leaf()) requires_grad_(requires_grad);
  return self();
}

bool Tensor::is_leaf() const { return !grad_fn(); }

intrusive_ptr<Node> Tensor::grad_fn() const {
  if (!requires_grad()) return {};
  refresh_view(*this);
  const AutogradMeta* meta = get_meta(*this);
  return meta ? meta->grad_fn : intrusive_ptr<Node>();
}

std::string Tensor::grad_fn_name() const {
  const intrusive_ptr<Node> node = grad_fn();
  return node ? node->name() : std::string();
}

int64_t Tensor::output_nr() const {
  const auto* meta = static_cast<const AutogradMeta*>(checked().autograd_meta());
  return meta ? meta->output_nr : 0;
}

const Tensor& Tensor::grad() const {
  static const Tensor undefined;
  const AutogradMeta* meta = get_meta(*this);
  const Tensor& grad = !meta ? undefined : meta->retained ? *meta->retained : meta->grad;
  if (RUSH_UNLIKELY(!grad.defined() && meta && !meta->retained && !is_leaf())) {
    RUSH_WARN_ONCE_PER_CALLER(
        "grad: this tensor is no leaf, so that backward() does not keep its gradient; call retain_grad() on it before "
        "backward(), or ask the leaf that was meant");
  }
  return grad;
}

Tensor& Tensor::mutable_grad() const {
  AutogradMeta& meta = need_meta(*this);
  return meta.retained ? *meta.retained : meta.grad;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<TensorList> inputs) const {
  RUSH_CHECK_VALUE(!inputs || !inputs->empty(), "backward: `inputs` is empty; leave it out for all leaves");
  autograd::backward(*this, gradient, retain_graph, create_graph, inputs.value_or(TensorList()));
}

Tensor Tensor::detach() const {
  // A view that autograd does not follow.
  return detail::make_alias(*this);
}

Tensor& Tensor::detach_() const {
  RUSH_CHECK(!is_view(), "detach_: a view cannot be detached in place; use detach()");
  AutogradMeta& meta = need_meta(*this);
  meta.grad_fn.reset();
  meta.output_nr = 0;
  meta.requires_grad = false;
  impl_->set_requires_autograd(false);
  return self();
}

void Tensor::set_data(const Tensor& other) const {
  RUSH_CHECK(!is_view() || !requires_grad(), "set_data: a view that requires a gradient cannot be given other data");
  const ScalarType dtype = other.scalar_type();
  RUSH_CHECK(!requires_grad() || rush::is_differentiable(dtype), "set_data: ", dtype, " cannot require gradients");
  const MemoryUse use = has_storage() ? storage()->use() : MemoryUse::Other;
  checked().set_data_of(other.checked());
  if (is_view()) impl_->set_view(nullptr, ViewOrigin::None);  // as a buffer may be that a module moves
  detail::claim_memory(*this, use);
}

namespace {

struct RetainGrad {
  std::shared_ptr<Tensor> total;
  void operator()(const Tensor& grad) const { *total = total->defined() ? *total + grad : grad.clone(); }
};
using RetainGradHook = detail::TensorHook<RetainGrad>;

}  // namespace

void keep_gradient(AutogradMeta& meta) {
  // A hook at the grad_fn before fills what nobody reads any more.
  meta.retained = std::make_shared<Tensor>(meta.retained ? *meta.retained : Tensor());
  meta.grad_fn->pre_hooks().push_back(std::make_unique<RetainGradHook>(RetainGrad{meta.retained}, meta.output_nr));
}

void Tensor::retain_grad() const {
  RUSH_CHECK(requires_grad(), "retain_grad: the tensor does not require a gradient");
  if (!is_leaf() && !retains_grad()) keep_gradient(need_meta(*this));
}

bool Tensor::retains_grad() const {
  const AutogradMeta* meta = get_meta(*this);
  return meta && meta->retained;
}

void detail::HookedGradient::check(const Tensor& grad) const {
  RUSH_CHECK_VALUE(grad.sizes() == IntArrayRef(sizes_), "register_hook: a hook made a gradient of shape ", grad.sizes(),
                   " of one of shape ", sizes_, "; it must keep the shape");
  RUSH_CHECK_TYPE(grad.scalar_type() == dtype_, "register_hook: a hook made a gradient of ", grad.scalar_type(),
                  " of one of ", dtype_, "; it must keep the dtype");
  RUSH_CHECK_VALUE(grad.device() == device_, "register_hook: a hook made a gradient on ", grad.device(), " of one on ",
                   device_, "; it must keep the device");
}

unsigned detail::add_tensor_hook(const Tensor& tensor, std::unique_ptr<NodeHook> hook) {
  RUSH_CHECK(tensor.requires_grad(), "register_hook: the tensor does not require a gradient");
  auto& hooks = tensor.is_leaf() ? need_meta(tensor).hooks : tensor.grad_fn()->pre_hooks();
  // In front of those that retain_grad added: what is kept is what every other hook has seen, as in PyTorch.
  auto place = hooks.end();
  while (place != hooks.begin() && dynamic_cast<RetainGradHook*>(std::prev(place)->get())) --place;
  place = hooks.insert(place, std::move(hook));
  return static_cast<unsigned>(place - hooks.begin());
}

void Tensor::remove_hook(unsigned position) const {
  auto& hooks = is_leaf() ? need_meta(*this).hooks : grad_fn()->pre_hooks();
  RUSH_CHECK_INDEX(position < hooks.size(), "remove_hook: there is no hook number ", position);
  // Later hooks keep their numbers.
  hooks[position] = std::make_unique<detail::NoHook>();
}

}  // namespace rush
