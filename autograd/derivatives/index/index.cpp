#include "core/ops/index/index.h"

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"

namespace rush {

namespace {

// The indices of a call; entries that were left out stay so.
struct SavedIndices {
  SavedList list;
  SavedIndices& operator=(OptionalTensorList indices) {
    Tensors tensors;
    for (const auto& index : indices) tensors.push_back(index.value_or(Tensor()));
    list = SavedList(tensors);
    return *this;
  }
  std::vector<std::optional<Tensor>> get() const {
    std::vector<std::optional<Tensor>> indices;
    for (const Tensor& index : list.get()) indices.push_back(index.defined() ? std::optional(index) : std::nullopt);
    return indices;
  }
};

struct IndexBackward final : Node {  // the gradient goes back to where the elements came from
  SavedSizes sizes;
  SavedIndices indices;
  RUSH_SAVED(indices.list)
  auto saved_arguments() { return std::tie(sizes, indices); }
  Tensors apply(const Tensors& g) override {
    return {index_put(zeros(sizes, g[0].options()), indices.get(), g[0], true)};
  }
};

struct IndexPutBackward final : Node {  // self: nothing where it was overwritten; values: what stands at the indices
  SavedIndices indices;
  bool accumulate = false;
  RUSH_SAVED(indices.list)
  auto saved_arguments() { return std::tie(std::ignore, indices, std::ignore, accumulate); }
  Tensors apply(const Tensors& g) override {
    const auto at = indices.get();
    Tensors grads(at.size() + 2);
    if (needs(0)) grads.front() = accumulate ? g[0] : index_put(g[0], at, zeros({}, g[0].options()));
    if (needs(at.size() + 1)) grads.back() = index(g[0], at);
    return grads;
  }
};

struct TakeBackward final : Node {
  SavedSizes sizes;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(sizes, index); }
  Tensors apply(const Tensors& g) override { return {put(zeros(sizes, g[0].options()), index.get(), g[0], true)}; }
};

struct PutBackward final : Node {
  SavedSizes source_sizes;
  Saved index;
  bool accumulate = false;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(std::ignore, index, source_sizes, accumulate); }
  Tensors apply(const Tensors& g) override {
    Tensors grads(3);
    const Tensor at = index.get();
    if (needs(0)) grads[0] = accumulate ? g[0] : put(g[0], at, zeros(source_sizes, g[0].options()));
    if (needs(2)) grads[2] = take(g[0], at).reshape(source_sizes);
    return grads;
  }
};

}  // namespace

void register_index_derivatives(Registry& r) {
  derive<ops::index, IndexBackward>(r);
  derive_all<IndexPutBackward, ops::index_put, ops::index_put_>(r);
  derive<ops::take, TakeBackward>(r);
  derive_all<PutBackward, ops::put, ops::put_>(r);
}

}  // namespace rush
