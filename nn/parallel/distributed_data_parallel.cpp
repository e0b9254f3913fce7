#include "nn/parallel/distributed_data_parallel.h"

#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"

namespace rush::nn::parallel::detail {

namespace {

// All tensors become those of process `source`.
void take_over(const std::vector<Tensor>& tensors, int source, const distributed::Group& group) {
  std::vector<distributed::WorkPtr> works;
  for (const Tensor& tensor : tensors) {
    works.push_back(distributed::broadcast(tensor, source, group, /*async_op=*/true));
  }
  for (const distributed::WorkPtr& work : works) work->wait();
}

}  // namespace

DistributedModule::DistributedModule(const Module& module, const DistributedDataParallelOptions& options)
    : Module("DistributedDataParallel"),
      group_(options.process_group() ? options.process_group() : distributed::world()),
      broadcasts_buffers_(options.broadcast_buffers()),
      reducer_(std::make_shared<Reducer>(module, group_, options)) {
  reducer_->watch();
  const int first = group_->ranks()[0];
  take_over(module.parameters(), first, group_);
  take_over(module.buffers(), first, group_);
  reducer_->set_announcement([this] { return announce(kReduceGradients).mean_factor; });
}

void DistributedModule::begin_forward(const Module& module) {
  if (broadcasts_buffers_ && module.is_training() && GradMode::is_enabled() && reducer_->synchronizes()) {
    const std::vector<Tensor> buffers = module.buffers();
    if (!buffers.empty()) take_over(buffers, announce(kTakeBuffers).source, group_);
  }
  reducer_->begin_forward();
}

void DistributedModule::shadow(const distributed::Attendance& others) {
  if (others.action == kTakeBuffers) return take_over(buffers(), others.source, group_);
  reducer_->shadow_backward(others.mean_factor);
}

void DistributedModule::end_join(int source) {
  take_over(parameters(), source, group_);
  take_over(buffers(), source, group_);
}

}  // namespace rush::nn::parallel::detail
