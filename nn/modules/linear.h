// Linear, Bilinear, Identity, Flatten, Unflatten.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/linear.h"

namespace rush::nn {

/// y = x weight^T + bias: (..., in) -> (..., out). Parameters weight (out, in) and bias (out), both uniform within
/// 1 / sqrt(in) at first. torch.nn.Linear.
class LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features) : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight, bias;
};
RUSH_MODULE(Linear);

/// y_k = x1^T weight_k x2 + bias_k. Parameters weight (out, in1, in2) and bias (out), both uniform within 1 / sqrt(in1)
/// at first. torch.nn.Bilinear.
class BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImpl(const BilinearOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input1, const Tensor& input2);

  BilinearOptions options;
  Tensor weight, bias;
};
RUSH_MODULE(Bilinear);

/// Returns its input. torch.nn.Identity.
class IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input; }
};
RUSH_MODULE(Identity);

/// Makes one dimension of start_dim to end_dim: (N, C, H, W) -> (N, C H W). torch.nn.Flatten.
RUSH_OPTIONS_MODULE(Flatten)

/// Makes several dimensions of one. torch.nn.Unflatten.
class UnflattenImpl : public Cloneable<UnflattenImpl> {
 public:
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes) : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
  explicit UnflattenImpl(UnflattenOptions options) : options(std::move(options)) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  UnflattenOptions options;
};
RUSH_MODULE(Unflatten);

}  // namespace rush::nn
