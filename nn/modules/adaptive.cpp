#include "nn/modules/adaptive.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/index/indexing.h"
#include "nn/functional/activation.h"
#include "nn/module_text.h"

namespace rush::nn {

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options)
    : options(std::move(options)) {
  AdaptiveLogSoftmaxWithLossImpl::reset();
}

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  const auto& o = options;
  RUSH_CHECK_VALUE(!o.cutoffs().empty(), "AdaptiveLogSoftmaxWithLoss: expected at least one cutoff");
  int64_t before = 0;
  for (const int64_t cutoff : o.cutoffs()) {
    RUSH_CHECK_VALUE(cutoff > before && cutoff < o.n_classes(),
                     "AdaptiveLogSoftmaxWithLoss: cutoffs must increase, between 1 and ", o.n_classes() - 1, ", got ",
                     o.cutoffs());
    before = cutoff;
  }
  RUSH_CHECK_VALUE(o.div_value() > 0, "AdaptiveLogSoftmaxWithLoss: div_value must be positive, got ", o.div_value());
  cutoffs = o.cutoffs();
  cutoffs.push_back(o.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(o.in_features(), head_size).bias(o.head_bias())));
  tail = register_module("tail", ModuleList());
  for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const double shrinking = std::pow(o.div_value(), static_cast<double>(i + 1));
    const auto features = static_cast<int64_t>(std::floor(static_cast<double>(o.in_features()) / shrinking));
    tail->push_back(Sequential(Linear(LinearOptions(o.in_features(), features).bias(false)),
                               Linear(LinearOptions(features, cutoffs[i + 1] - cutoffs[i]).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (size_t i = 0; i < tail->size(); ++i) {
    for (const auto& each : *tail->ptr(i)->as<Sequential>()) each.get<LinearImpl>().reset_parameters();
  }
}

Tensor AdaptiveLogSoftmaxWithLossImpl::cluster_log_prob(size_t cluster, const Tensor& input) {
  return functional::log_softmax(tail->ptr(cluster)->as<Sequential>()->forward(input), 1);
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input, const Tensor& target) {
  const ModuleScope scope(*this);
  RUSH_CHECK_VALUE((target.dim() == 1 && input.dim() == 2 && input.size(0) == target.size(0)) ||
                       (target.dim() == 0 && input.dim() == 1),
                   "AdaptiveLogSoftmaxWithLoss: an input of shape ", input.sizes(),
                   " does not go with a target of shape ", target.sizes());
  const bool batched = target.dim() == 1;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const Tensor y = (batched ? target : target.unsqueeze(0)).to(kInt64);
  RUSH_CHECK_INDEX(logical_and(y >= 0, y < options.n_classes()).all().item<bool>(),
                   "AdaptiveLogSoftmaxWithLoss: a target is none of ", options.n_classes(), " classes");

  Tensor in_head = y;  // each target's place in the head's output: the class, or its cluster
  Tensor output = zeros({y.size(0)}, x.options());
  for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const Tensor rows = logical_and(y >= cutoffs[i], y < cutoffs[i + 1]).nonzero().squeeze(1);
    if (rows.numel() == 0) continue;
    const Tensor place = (y.index_select(0, rows) - cutoffs[i]).unsqueeze(1);
    const Tensor within = cluster_log_prob(i, x.index_select(0, rows)).gather(1, place).squeeze(1);
    output = output.index_copy(0, rows, within);
    in_head = in_head.index_fill(0, rows, shortlist_size + static_cast<int64_t>(i));
  }
  output = output + functional::log_softmax(head(x), 1).gather(1, in_head.unsqueeze(1)).squeeze(1);
  const Tensor loss = -output.mean();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::full_log_prob(const Tensor& input, const Tensor& head_output) {
  const Tensor scores = functional::log_softmax(head_output, 1);
  std::vector<Tensor> parts{scores.narrow(1, 0, shortlist_size)};
  for (size_t i = 0; i < tail->size(); ++i) {
    parts.push_back(cluster_log_prob(i, input) + scores.narrow(1, shortlist_size + static_cast<int64_t>(i), 1));
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) { return full_log_prob(input, head(input)); }

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  const Tensor scores = head(input);
  const Tensor best = scores.argmax(1);
  const Tensor rows = (best >= shortlist_size).nonzero().squeeze(1);
  if (rows.numel() == 0) return best;
  const Tensor rare = full_log_prob(input.index_select(0, rows), scores.index_select(0, rows));
  return best.index_copy(0, rows, rare.argmax(1));
}

void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("AdaptiveLogSoftmaxWithLoss");
}

}  // namespace rush::nn
