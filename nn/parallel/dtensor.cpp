#include "nn/parallel/dtensor.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/str.h"
#include "nn/parallel/dtensor_parts.h"

namespace rush::nn::parallel {

using detail::DTensorSpec;
using distributed::DeviceMesh;

namespace detail {

namespace {

// A DTensor's storage has no bytes. Its context is the state, which it has if it came from this allocator.
class StateAllocator final : public Allocator {
 public:
  void* allocate(size_t) override { return nullptr; }
  void deallocate(void*, size_t) noexcept override {}
  Allocation allocate_on(Device, size_t) override { return {nullptr, new DTensorState}; }
  void deallocate(const Allocation& block, size_t) noexcept override {
    delete static_cast<DTensorState*>(block.context);
  }
  AllocatorStats stats() const override { return {}; }
  void empty_cache() override {}
};
StateAllocator& states() {
  static StateAllocator& instance = *new StateAllocator;  // tensors may outlive static variables
  return instance;
}

// Holds its storage twice, so that autograd never takes itself for the only user and adds to a gradient in place: the
// local tensors of two DTensors may share memory.
struct DTensorImpl final : TensorImpl {
  DTensorImpl(const Storage& storage, ScalarType dtype)
      : TensorImpl(storage, dtype, storage.device()), again(storage) {}
  Storage again;
};

Tensor make_dtensor(const Tensor& local, const DTensorSpec& spec) {
  dtensor_key();
  const Storage storage = make_intrusive<StorageImpl>(0, local.device(), &states());
  *static_cast<DTensorState*>(storage->context()) = {rush::detail::make_alias(local), spec};
  auto impl = make_intrusive<DTensorImpl>(storage, local.scalar_type());
  impl->set_contiguous(spec.sizes);
  return Tensor(std::move(impl));
}

const DTensorSpec& spec_of(const Tensor& tensor) { return dtensor_state(tensor)->spec; }

// Note [Gradients of distributed tensors]
// Between a DTensor and its local tensor autograd has the functions ToLocal and FromLocal. What an operator computes
// between them is recorded as on one process. Backward, local gradients of the results, which lie as the results do,
// become local gradients of the arguments. Each process computes with its own shards and summands, so that these lie
// as the arguments do, with two exceptions. The gradient of a Partial tensor is replicated: each summand counts fully.
// That of a replicated argument is Partial, since the process adds what its own results contribute; it is replicated
// only where the results are, too.
//
// So ToLocal leads from placements to others of the gradient, and FromLocal likewise. The derivative of each is the
// other, with both exchanged, which makes second derivatives right.
//
// A gradient is itself a DTensor, whose placements may be any: FromLocal redistributes it to those that its operator
// needs. So the Partial gradients of all uses of a tensor are added up first, and summed over the processes once.
struct PlacedBackward : Node {
  PlacedBackward(DTensorSpec s, Placements g) : spec(std::move(s)), gradient(std::move(g)) {}
  // A plain gradient is one that a program gives to backward(), the same on all processes.
  DTensor placed(const Tensor& grad) const {
    const bool is_plain = !DTensor::is_dtensor(grad);
    return DTensor(is_plain ? wrap_local(grad, {spec.mesh, all_replicated(spec.mesh), spec.sizes}) : grad)
        .redistribute(gradient);
  }
  const DTensorSpec spec;     // of the DTensor
  const Placements gradient;  // its gradient's, or that of its local tensor
};

Tensor from_local(const Tensor& local, const DTensorSpec& spec, const Placements& gradient);

struct FromLocalBackward final : PlacedBackward {
  using PlacedBackward::PlacedBackward;
  Tensors apply(const Tensors& g) override { return {unwrap_local(placed(g[0]), spec.placements)}; }
};

struct ToLocalBackward final : PlacedBackward {
  using PlacedBackward::PlacedBackward;
  Tensors apply(const Tensors& g) override {
    return {from_local(g[0], {spec.mesh, gradient, spec.sizes}, spec.placements)};
  }
};

struct RedistributeBackward final : PlacedBackward {
  using PlacedBackward::PlacedBackward;
  Tensors apply(const Tensors& g) override { return {placed(g[0])}; }
};

// `result` as what a function has made of `input`.
template <class Backward>
Tensor recorded(const Tensor& result, const Tensor& input, const DTensorSpec& spec, const Placements& gradient) {
  if (!GradMode::is_enabled() || !input.requires_grad()) return result;
  auto node = make_intrusive<Backward>(spec, gradient);
  node->add_next_edge(gradient_edge(input));
  set_history(result, node);
  return result;
}

Tensor from_local(const Tensor& local, const DTensorSpec& spec, const Placements& gradient) {
  return recorded<FromLocalBackward>(make_dtensor(local, spec), local, spec, gradient);
}

Placements of_gradient(Placements placements) {
  for (Placement& each : placements) {
    if (each.is_partial()) each = Replicate();
  }
  return placements;
}

// With dimensions that count from the front.
Placements checked_placements(const char* who, const DeviceMesh& mesh, Placements placements, int64_t dims) {
  RUSH_CHECK_VALUE(placements.size() == mesh.dims().size(), who, ": ", mesh.str(), " has ", mesh.dims().size(),
                   " dimensions, got ", placements.size(), " placements: ", placements);
  for (Placement& each : placements) {
    if (each.is_shard()) each.dim = wrap_dim(each.dim, dims, who);
  }
  return placements;
}

}  // namespace

const DTensorState* dtensor_state(const Tensor& tensor) {
  if (!tensor.has_storage() || tensor.storage()->allocator() != &states()) return nullptr;
  return static_cast<const DTensorState*>(tensor.storage()->context());
}

Placements all_replicated(const DeviceMesh& mesh) { return Placements(mesh.dims().size(), Replicate()); }

Tensor wrap_local(const Tensor& local, const DTensorSpec& spec) {
  return from_local(local, spec, of_gradient(spec.placements));
}

Tensor unwrap_local(const Tensor& tensor, const Placements& gradient) {
  const DTensorState& state = *dtensor_state(tensor);
  return recorded<ToLocalBackward>(rush::detail::make_alias(state.local), tensor, state.spec, gradient);
}

}  // namespace detail

void append(std::string& out, const Placement& placement) {
  out += placement.is_shard() ? str("Shard(", placement.dim, ")") : placement.is_partial() ? "Partial" : "Replicate";
}

DTensor::DTensor(const Tensor& tensor) : Tensor(tensor) {
  RUSH_CHECK_TYPE(is_dtensor(tensor),
                  "DTensor: the tensor is not distributed; distribute_tensor and DTensor::from_local make one that is");
  const DimVector& whole = detail::spec_of(tensor).sizes;
  RUSH_CHECK_VALUE(sizes() == IntArrayRef(whole), "DTensor: one of sizes ", whole, " was given the sizes ", sizes(),
                   " in place; call the function that returns a new tensor");
}

bool DTensor::is_dtensor(const Tensor& tensor) { return detail::dtensor_state(tensor) != nullptr; }

DTensor DTensor::from_local(const Tensor& local, const DeviceMesh& mesh, const Placements& placements,
                            OptionalIntArrayRef sizes) {
  const char* who = "DTensor::from_local";
  DTensorSpec spec{mesh, detail::checked_placements(who, mesh, placements, local.dim()),
                   DimVector(sizes ? *sizes : local.sizes())};
  RUSH_CHECK_VALUE(spec.sizes.size() == local.sizes().size(), who, ": a local tensor of sizes ", local.sizes(),
                   " is no chunk of one of ", spec.sizes);
  for (size_t i = 0; i < spec.placements.size() && !sizes; ++i) {
    const Placement& each = spec.placements[i];
    if (each.is_shard()) spec.sizes[static_cast<size_t>(each.dim)] *= mesh.dims()[i].size;
  }
  const DimVector expected = detail::local_sizes(spec);
  RUSH_CHECK_VALUE(local.sizes() == IntArrayRef(expected), who, ": this process's chunk of ", spec.sizes, " placed ",
                   spec.placements, " on ", mesh.str(), " has sizes ", expected, ", got ", local.sizes());
  return DTensor(detail::wrap_local(local, spec));
}

Tensor DTensor::to_local(const std::optional<Placements>& grad_placements) const {
  return detail::unwrap_local(
      *this, grad_placements ? detail::checked_placements("DTensor::to_local", device_mesh(), *grad_placements, dim())
                             : detail::of_gradient(placements()));
}

DTensor DTensor::redistribute(const Placements& to) const {
  const auto& [local, spec] = *detail::dtensor_state(*this);
  const Placements checked = detail::checked_placements("DTensor::redistribute", spec.mesh, to, dim());
  if (checked == spec.placements) return *this;
  const DispatchStateGuard plain{KeySet(detail::dtensor_key())};
  const Tensor moved =
      detail::make_dtensor(detail::redistribute_local(local, spec, checked), {spec.mesh, checked, spec.sizes});
  const Placements gradient = detail::of_gradient(spec.placements);
  return DTensor(detail::recorded<detail::RedistributeBackward>(moved, *this, spec, gradient));
}

Tensor DTensor::full_tensor() const { return redistribute(detail::all_replicated(device_mesh())).to_local(); }

const DeviceMesh& DTensor::device_mesh() const { return detail::spec_of(*this).mesh; }
const Placements& DTensor::placements() const { return detail::spec_of(*this).placements; }

std::string to_string(const DTensor& tensor) {
  const auto& [local, spec] = *detail::dtensor_state(tensor);
  return str("DTensor(local_tensor=", rush::to_string(local), ", device_mesh=", spec.mesh.str(),
             ", placements=", spec.placements, ")");
}

DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh, const Placements& placements) {
  RUSH_CHECK_TYPE(!DTensor::is_dtensor(tensor), "distribute_tensor: the tensor is distributed already; ",
                  "DTensor::redistribute places it otherwise");
  const Placements checked = detail::checked_placements("distribute_tensor", mesh, placements, tensor.dim());
  const DTensorSpec whole{mesh, detail::all_replicated(mesh), DimVector(tensor.sizes())};
  const Tensor local = detail::redistribute_local(tensor.detach(), whole, checked);
  const Tensor leaf = detail::make_dtensor(local, {mesh, checked, whole.sizes});
  return DTensor(leaf.requires_grad_(tensor.requires_grad()));
}

}  // namespace rush::nn::parallel
