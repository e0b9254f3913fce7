#include "nn/parallel/dtensor.h"

#include <ostream>

#include "autograd/function.h"
#include "core/str.h"
#include "nn/parallel/dtensor_parts.h"
#include "nn/parallel/redistribute.h"

namespace rush::nn::parallel {

using detail::DTensorState;
using distributed::DeviceMesh;

namespace detail {

namespace {

// A DTensor's storage has no bytes. Its context is the state; that it came from this allocator tells that it has one.
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

// Holds its storage twice: local tensors share memory with others, of which autograd, which adds gradients up in place
// where they are a storage's only user, knows nothing.
struct DTensorImpl final : TensorImpl {
  DTensorImpl(const Storage& storage, ScalarType dtype)
      : TensorImpl(storage, dtype, storage.device()), again(storage) {}
  Storage again;
};

Tensor make_dtensor(const Tensor& local, const DeviceMesh& mesh, const Placements& placements, IntArrayRef sizes) {
  dtensor_key();
  const Storage storage = make_intrusive<StorageImpl>(0, local.device(), &states());
  *static_cast<DTensorState*>(storage->context()) = {rush::detail::make_alias(local), mesh, placements};
  auto impl = make_intrusive<DTensorImpl>(storage, local.scalar_type());
  impl->set_contiguous(sizes);
  return Tensor(std::move(impl));
}

const DTensorState& state_of(const Tensor& tensor) { return *dtensor_state(tensor); }

// The placements of a gradient, of which a Partial tensor has the whole on all processes.
Placements of_gradient(Placements placements) {
  for (Placement& each : placements) {
    if (each.is_partial()) each = Replicate();
  }
  return placements;
}

// Note [Gradients of distributed tensors]
// ToLocal and FromLocal lead from DTensors to local tensors and back. Between them an operator computes with local
// tensors, and autograd records it as on one process. Its backward pass maps the local gradients of the results, which
// lie as the results do (those of a Partial result are replicated), to local gradients of the arguments. Since
// processes compute with their own shards and summands, such a gradient lies as its argument does, with two exceptions:
// that of a Partial argument is replicated, and that of a replicated argument, which takes part in what every process
// computes for its own result, is Partial; it is replicated only where the results are, too. A gradient is itself a
// DTensor, in any placements: FromLocal redistributes it to those that its operator needs, so that Partial gradients
// are summed once, after those of all uses have been added up.

struct FromLocal : autograd::Function<FromLocal> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& local, const DeviceMesh& mesh,
                        const Placements& placements, const DimVector& sizes) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["mesh"] = mesh;
    ctx->saved_data["placements"] = of_gradient(placements);
    return make_dtensor(local, mesh, placements, sizes);
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
    if (!grads[0].defined()) return {{}, {}, {}, {}};
    const auto mesh = std::any_cast<DeviceMesh>(ctx->saved_data["mesh"]);
    const auto placements = std::any_cast<Placements>(ctx->saved_data["placements"]);
    // A plain tensor is one that a program gave backward(), on all processes.
    const Tensor grad =
        DTensor::is_dtensor(grads[0]) ? grads[0] : wrap_local(grads[0], mesh, all_replicated(mesh), grads[0].sizes());
    return {unwrap_local(DTensor(grad).redistribute(placements), placements), {}, {}, {}};
  }
};

struct ToLocal : autograd::Function<ToLocal> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& tensor, const Placements& gradient) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["mesh"] = state_of(tensor).mesh;
    ctx->saved_data["gradient"] = gradient;
    ctx->saved_data["sizes"] = DimVector(tensor.sizes());
    return rush::detail::make_alias(state_of(tensor).local);
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
    if (!grads[0].defined()) return {{}, {}};
    return {wrap_local(grads[0], std::any_cast<DeviceMesh>(ctx->saved_data["mesh"]),
                       std::any_cast<Placements>(ctx->saved_data["gradient"]),
                       std::any_cast<DimVector>(ctx->saved_data["sizes"])),
            {}};
  }
};

struct Redistribute : autograd::Function<Redistribute> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& tensor, const Placements& placements) {
    const DispatchStateGuard plain{KeySet(dtensor_key())};
    const DTensorState& state = state_of(tensor);
    ctx->set_materialize_grads(false);
    ctx->saved_data["placements"] = of_gradient(state.placements);
    return make_dtensor(redistribute_local(state.local, tensor.sizes(), state.mesh, state.placements, placements),
                        state.mesh, placements, tensor.sizes());
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
    if (!grads[0].defined() || !DTensor::is_dtensor(grads[0])) return {grads[0], {}};
    return {DTensor(grads[0]).redistribute(std::any_cast<Placements>(ctx->saved_data["placements"])), {}};
  }
};

// With dimensions that count from the front.
Placements checked_placements(const char* who, const DeviceMesh& mesh, Placements placements, int64_t dims) {
  RUSH_CHECK_VALUE(mesh, who, ": there is no mesh");
  RUSH_CHECK_VALUE(placements.size() == mesh.dims().size(), who, ": the mesh ", mesh.str(), " has ", mesh.dims().size(),
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

Tensor wrap_local(const Tensor& local, const DeviceMesh& mesh, const Placements& placements, IntArrayRef sizes) {
  return FromLocal::apply(local, mesh, placements, DimVector(sizes));
}

Tensor unwrap_local(const Tensor& tensor, const Placements& gradient) { return ToLocal::apply(tensor, gradient); }

}  // namespace detail

void append(std::string& out, const Placement& placement) {
  out += placement.is_shard() ? str("Shard(", placement.dim, ")") : placement.is_partial() ? "Partial" : "Replicate";
}

void append(std::string& out, const Placements& placements) {
  const char* separator = "(";
  for (const Placement& each : placements) out += str(std::exchange(separator, ", "), each);
  out += ')';
}

DTensor::DTensor(const Tensor& tensor) : Tensor(tensor) {
  RUSH_CHECK_TYPE(is_dtensor(tensor),
                  "DTensor: the tensor is not distributed; distribute_tensor and "
                  "DTensor::from_local make one that is");
}

bool DTensor::is_dtensor(const Tensor& tensor) { return detail::dtensor_state(tensor) != nullptr; }

DTensor DTensor::from_local(const Tensor& local, const DeviceMesh& mesh, const Placements& placements,
                            OptionalIntArrayRef sizes) {
  const char* who = "DTensor::from_local";
  const Placements checked = detail::checked_placements(who, mesh, placements, local.dim());
  DimVector whole = sizes ? DimVector(*sizes) : DimVector(local.sizes());
  for (size_t i = 0; i < checked.size() && !sizes; ++i) {
    if (checked[i].is_shard()) whole[static_cast<size_t>(checked[i].dim)] *= mesh.dims()[i].size;
  }
  RUSH_CHECK_VALUE(whole.size() == static_cast<size_t>(local.dim()), who, ": a local tensor of sizes ", local.sizes(),
                   " is no chunk of one of ", whole);
  const DimVector expected = detail::local_sizes(whole, mesh, checked);
  RUSH_CHECK_VALUE(local.sizes() == IntArrayRef(expected), who, ": this process's local tensor of ", whole, " placed ",
                   checked, " on the mesh ", mesh.str(), " has sizes ", expected, ", got ", local.sizes());
  return DTensor(detail::wrap_local(local, mesh, checked, whole));
}

Tensor DTensor::to_local(const std::optional<Placements>& grad_placements) const {
  return detail::unwrap_local(
      *this, grad_placements ? detail::checked_placements("DTensor::to_local", device_mesh(), *grad_placements, dim())
                             : detail::of_gradient(placements()));
}

DTensor DTensor::redistribute(const Placements& to) const {
  const Placements checked = detail::checked_placements("DTensor::redistribute", device_mesh(), to, dim());
  return checked == placements() ? *this
                                 : DTensor(detail::Redistribute::apply(static_cast<const Tensor&>(*this), checked));
}

Tensor DTensor::full_tensor() const { return redistribute(detail::all_replicated(device_mesh())).to_local(); }

const DeviceMesh& DTensor::device_mesh() const { return detail::state_of(*this).mesh; }
const Placements& DTensor::placements() const { return detail::state_of(*this).placements; }

std::ostream& operator<<(std::ostream& stream, const DTensor& tensor) {
  return stream << "DTensor(local_tensor=" << to_string(detail::state_of(tensor).local)
                << ", device_mesh=" << tensor.device_mesh().str() << ", placements=" << str(tensor.placements()) << ')';
}

DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh, const Placements& placements) {
  RUSH_CHECK_TYPE(!DTensor::is_dtensor(tensor), "distribute_tensor: the tensor is distributed already; ",
                  "DTensor::redistribute places it otherwise");
  const Placements checked = detail::checked_placements("distribute_tensor", mesh, placements, tensor.dim());
  const Tensor whole = tensor.detach();
  const Tensor local = detail::redistribute_local(whole, whole.sizes(), mesh, detail::all_replicated(mesh), checked);
  const Tensor leaf = detail::make_dtensor(local, mesh, checked, whole.sizes());
  return DTensor(leaf.requires_grad_(tensor.requires_grad()));
}

}  // namespace rush::nn::parallel
