#include "nn/parallel/pipeline_stage.h"

#include <numeric>

namespace rush::nn::parallel {

PipelineStage::PipelineStage(Function forward, int index, int count, distributed::Group group)
    : forward_(std::move(forward)),
      index_(index),
      count_(count),
      group_(group ? std::move(group) : distributed::world()) {
  RUSH_CHECK_VALUE(forward_, "PipelineStage: the function is empty");
  RUSH_CHECK_VALUE(index >= 0 && index < count, "PipelineStage: there is no stage ", index, " of ", count);
}

PipelineStage::PipelineStage(AnyModule module, int index, int count, distributed::Group group)
    : PipelineStage([module](const Tensor& input) { return module.forward(input); }, index, count, std::move(group)) {
  module_ = module.ptr();
}

Device PipelineStage::device() const {
  if (module_) {
    if (const std::vector<Tensor> parameters = module_->parameters(); !parameters.empty()) {
      return parameters[0].device();
    }
  }
  return group_->device();
}

std::vector<PipelineStage> split_sequential(const Sequential& net, const std::vector<size_t>& begins,
                                            distributed::Group group) {
  if (!group) group = distributed::world();
  const auto processes = static_cast<size_t>(group->size());
  RUSH_CHECK_VALUE(!begins.empty() && begins.size() % processes == 0, "split_sequential: ", begins.size(),
                   " stages are not equally many for each of ", processes, " processes");
  std::vector<size_t> ends(begins.begin() + 1, begins.end());
  ends.push_back(net->size());
  const std::vector<std::string> names = net->named_children().keys();
  std::vector<PipelineStage> own;
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    RUSH_CHECK_VALUE(begins[0] == 0 && begins[stage] < ends[stage], "split_sequential: stage ", stage,
                     " would be the modules from ", begins[stage], " to ", ends[stage], ", of ", net->size(),
                     "; expected stages that begin at 0 and increasing numbers");
    if (stage % processes != static_cast<size_t>(group->rank())) continue;
    Sequential modules;
    for (size_t i = begins[stage]; i < ends[stage]; ++i) {
      modules->push_back(names[i], *(net->begin() + static_cast<std::ptrdiff_t>(i)));
    }
    own.emplace_back(modules, static_cast<int>(stage), static_cast<int>(begins.size()), group);
  }
  return own;
}

std::vector<size_t> balanced_begins(const std::vector<double>& counts, int stages) {
  RUSH_CHECK_VALUE(stages >= 1 && static_cast<size_t>(stages) <= counts.size(), "split_sequential: ", counts.size(),
                   " modules cannot be ", stages, " stages");
  const double share = std::accumulate(counts.begin(), counts.end(), 0.0) / stages;
  const auto wanted = static_cast<size_t>(stages);
  std::vector<size_t> begins{0};
  double before = counts[0];  // parameters of the modules before number i
  for (size_t i = 1; i < counts.size() && begins.size() < wanted; before += counts[i++]) {
    const bool is_needed = counts.size() - i == wanted - begins.size();  // the stages that are left need a module each
    const bool is_due = counts[i] > 0 && before + counts[i] / 2 >= share * static_cast<double>(begins.size());
    if (is_needed || is_due) begins.push_back(i);
  }
  return begins;
}

std::vector<PipelineStage> split_sequential(const Sequential& net, int stages, distributed::Group group) {
  std::vector<double> counts;
  for (const AnyModule& module : *net) {
    double& count = counts.emplace_back(0);
    for (const Tensor& parameter : module.ptr()->parameters()) count += static_cast<double>(parameter.numel());
  }
  return split_sequential(net, balanced_begins(counts, stages), std::move(group));
}

}  // namespace rush::nn::parallel
