// AdaptiveLogSoftmaxWithLoss: a softmax over many classes, of which the frequent ones cost most.
#pragma once
#include "nn/modules/container.h"
#include "nn/modules/linear.h"
#include "nn/options/adaptive.h"

namespace rush::nn {

/// The log-probability of each sample's target, (N) or (), and the mean of its negatives. In libtorch the loss is a
/// double; as a tensor, which Python has, it has a gradient.
struct ASMoutput {
  Tensor output, loss;
};

/// Classes come in the order of their frequency. The head scores those before the first cutoff and, with one score
/// each, the clusters between the cutoffs; a cluster's classes have scores of their own, of div_value^(i + 1) times
/// fewer features. Parameters head.weight, head.bias where it has one, and tail.i.0.weight, tail.i.1.weight. Throws
/// ValueError for cutoffs that are not increasing numbers between 1 and n_classes - 1. Grave et al., "Efficient softmax
/// approximation for GPUs" (2017). torch.nn.AdaptiveLogSoftmaxWithLoss.
class AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options);
  void reset() override;
  void reset_parameters();  // each part's own
  void pretty_print(std::ostream& stream) const override;
  /// (N, in_features) and classes (N), or (in_features) and (). Throws ValueError for other shapes, IndexError for a
  /// target that is no class.
  ASMoutput forward(const Tensor& input, const Tensor& target);
  /// The log-probabilities of all classes: (N, in_features) -> (N, n_classes).
  Tensor log_prob(const Tensor& input);
  /// The most probable class of each sample, (N): log_prob(input).argmax(1), without it where the head knows.
  Tensor predict(const Tensor& input);

  AdaptiveLogSoftmaxWithLossOptions options;
  /// The options' cutoffs, and n_classes.
  std::vector<int64_t> cutoffs;
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head = nullptr;
  ModuleList tail;

 private:
  Tensor cluster_log_prob(size_t cluster, const Tensor& input);
  Tensor full_log_prob(const Tensor& input, const Tensor& head_output);
};
RUSH_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace rush::nn
