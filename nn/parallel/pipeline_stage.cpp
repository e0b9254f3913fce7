#include "nn/parallel/pipeline_stage.h"

#include <algorithm>

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

namespace {

// Where stages begin that have at most `most` parameters each, filled one after the other; one more stage than `stages`
// where these do not suffice.
std::vector<size_t> begins_within(const std::vector<int64_t>& counts, size_t stages, int64_t most) {
  std::vector<size_t> begins;
  int64_t in_stage = 0;
  for (size_t i = 0; i < counts.size() && begins.size() <= stages; ++i) {
    const bool is_needed = counts.size() - i <= stages - begins.size();  // a module for each stage that is left
    if (begins.empty() || in_stage + counts[i] > most || is_needed) {
      begins.push_back(i);
      in_stage = 0;
    }
    in_stage += counts[i];
  }
  return begins;
}

}  // namespace

std::vector<PipelineStage> split_sequential(const Sequential& net, int stages, distributed::Group group) {
  RUSH_CHECK_VALUE(stages >= 1 && static_cast<size_t>(stages) <= net->size(), "split_sequential: ", net->size(),
                   " modules cannot be ", stages, " stages");
  std::vector<int64_t> counts;
  int64_t total = 0, largest = 0;
  for (const AnyModule& module : *net) {
    int64_t& count = counts.emplace_back(0);
    for (const Tensor& parameter : module.ptr()->parameters()) count += parameter.numel();
    total += count;
    largest = std::max(largest, count);
  }
  const auto wanted = static_cast<size_t>(stages);
  while (largest < total) {  // the least number of parameters in which the stages suffice, by bisection
    const int64_t middle = largest + (total - largest) / 2;
    if (begins_within(counts, wanted, middle).size() <= wanted) {
      total = middle;
    } else {
      largest = middle + 1;
    }
  }
  return split_sequential(net, begins_within(counts, wanted, total), std::move(group));
}

}  // namespace rush::nn::parallel
