#include "core/ops/view/copy.h"

#include <map>

#include "autograd/derivatives/register.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/cast_all.h"

namespace rush {

namespace {

// The engine brings the gradient to the source's dtype; a source on another device needs it there.
struct CopyBackward final : Node {
  Device source_device;
  void save(const Tensor&, const Tensor& src, bool) { source_device = src.device(); }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? zeros_like(g[0]) : Tensor(), needs(1) ? g[0].to(source_device) : Tensor()};
  }
};

struct CloneBackward final : Node {
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};

struct ToCopyBackward final : Node {
  TensorOptions source;
  void save(const Tensor& self, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
            std::optional<bool>, bool, std::optional<MemoryFormat>) {
    source = self.options();
  }
  Tensors apply(const Tensors& g) override { return {g[0].to(source)}; }
};

struct CastAllBackward final : Node {  // each gradient as its tensor is; those of one dtype together
  std::vector<ScalarType> dtypes;
  void save(TensorList tensors, ScalarType) {
    for (const Tensor& t : tensors) dtypes.push_back(t.scalar_type());
  }
  Tensors apply(const Tensors& g) override {
    Tensors grads(g.size());
    std::map<ScalarType, std::vector<size_t>> places;
    for (size_t i = 0; i < g.size(); ++i) {
      if (g[i].defined() && needs(i)) places[dtypes[i]].push_back(i);
    }
    for (const auto& [dtype, here] : places) {
      Tensors sources;
      for (const size_t i : here) sources.push_back(g[i]);
      const Tensors casts = cast_all(sources, dtype);
      for (size_t k = 0; k < here.size(); ++k) grads[here[k]] = casts[k];
    }
    return grads;
  }
};

struct FillBackward final : Node {  // nothing of the old value is left
  Tensors apply(const Tensors& g) override { return {zeros_like(g[0])}; }
};

struct FillTensorBackward final : Node {  // each element is the value
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? zeros_like(g[0]) : Tensor(), needs(1) ? g[0].sum() : Tensor()};
  }
};

}  // namespace

void register_copy_derivatives(Registry& r) {
  derive<ops::copy_, CopyBackward>(r);
  derive<ops::clone, CloneBackward>(r);
  derive<ops::_to_copy, ToCopyBackward>(r);
  derive<ops::cast_all, CastAllBackward>(r);
  derive_all<FillBackward, ops::fill, ops::fill_>(r);
  derive_all<FillTensorBackward, ops::fill_Tensor, ops::fill_Tensor_>(r);
  derive<ops::zero_, FillBackward>(r);
}

}  // namespace rush
