// SemiStructuredLinear: a linear layer whose weight is 2:4 and compressed.
#pragma once
#include "core/ops/sparse/semi_structured.h"
#include "nn/modules/linear.h"

namespace rush::nn {

// What a trained Linear becomes for inference: y = x weight^T + bias, (..., in) -> (..., out), by a weight that is kept
// compressed. In Python a Linear is given the weight torch.sparse.to_sparse_semi_structured(linear.weight).
//
//   linear->to(kCUDA, kFloat16);
//   linear->weight.set_data(sparse::prune_semi_structured(linear->weight.detach()));
//   nn::SemiStructuredLinear fast(linear);
//
// The weight has no gradient; the input and the bias do. What is compressed fits one kind of device and one dtype, see
// Note [Semi-structured matrices]: the layer is made where it is used, and cannot be moved from the CPU to a GPU or
// back, nor converted; `forward` or load_state_dict says so.
class SemiStructuredLinearImpl : public Cloneable<SemiStructuredLinearImpl> {
 public:
  /// Shares the memory of its bias with `linear`. Throws ValueError unless its weight is 2:4 and in and out are
  /// multiples of 16, and TypeError or NotImplementedError where its dtype or device is not served.
  explicit SemiStructuredLinearImpl(const LinearImpl& linear);
  explicit SemiStructuredLinearImpl(const Linear& linear) : SemiStructuredLinearImpl(*linear) {}
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  /// The weight as it was: (out, in).
  Tensor dense_weight() const { return weight().to_dense(); }

  LinearOptions options;
  /// The compressed weight's bits as integers, which no conversion of the module's dtype touches.
  Tensor packed;
  Tensor bias;

 private:
  sparse::SparseSemiStructuredTensor weight() const { return {packed.view(dtype_), options.in_features()}; }

  ScalarType dtype_;
};
RUSH_MODULE(SemiStructuredLinear);

}  // namespace rush::nn
