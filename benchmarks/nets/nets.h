// The nets that rush::compile is measured and tested with, each with a batch and what a training does with it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rushlight.h"

namespace plain {

using namespace rush;

/// What a workload is for: GPUs train large ones in bfloat16, CPUs have smaller ones in float32, and tests tiny ones.
enum class Size { Test, Cpu, Gpu };

/// A net and its batch. `forward` is what inference gives, `loss` what a training makes small.
struct Workload {
  std::shared_ptr<nn::Module> net;
  Tensor x, y;
  std::function<Tensor(const Tensor& x)> forward;
  std::function<Tensor(const Tensor& x, const Tensor& y)> loss;
  /// Of what a GPU computes in: training by autocast, inference with weights of it.
  ScalarType dtype = kFloat32;
  /// Whether images and convolutions' weights lie with their channels innermost.
  bool is_channels_last = false;
  /// SGD with momentum instead of AdamW.
  bool is_by_sgd = false;
};

/// The names of all nets.
std::vector<std::string> names_of_nets();
/// A net on the default device, with weights of its random numbers. Throws ValueError on another name.
Workload make_workload(const std::string& name, Size size);

/// A step of training.
class Training {
 public:
  /// `is_capturable`: the step may become a CUDA graph.
  Training(const Workload& workload, bool is_capturable, double rate_of_adam = 1e-3);

  /// Forward, backward and a step of the optimiser. Returns the loss before it.
  Tensor operator()(const Tensor& x, const Tensor& y);

 private:
  Workload workload_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

/// Has net and batch ready for forward passes under NoGradGuard: in evaluation mode, in the workload's dtype.
void prepare_for_inference(Workload& workload);

}  // namespace plain
