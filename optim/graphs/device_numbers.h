// DeviceNumbers: what a capturable optimiser keeps in device memory instead of the host's.
#pragma once
#include <memory>
#include <vector>

#include "core/graphs/graph.h"
#include "core/tensor.h"

namespace rush::optim {

class Optimizer;

// Note [Capturable optimisers]
// A step that is captured in a graph runs again without the host, so what changes from step to step must lie in
// device memory. With the option capturable(true)
//   - the steps that a parameter has taken are counted on the device;
//   - the numbers of a group's options (the learning rate, the betas, the weight decay) have a copy on the device. The
//     options stay what programs and schedules set; a step outside of a graph, and each replay of a graph, first brings
//     the copy up to date. That gives a fill to the stream for each number that changed, and waits for nothing;
//   - corrections that depend on both are computed on the device, by the same functors;
//   - a GradScaler does not wait for the device to know whether to skip a step: the kernels ask.
// Which kernel runs (Nesterov, AMSGrad, whether there is a momentum) is fixed when a graph is captured. A graph keeps
// the memory of the states that it updates. load_state_dict makes new ones: load before the capture. A step takes one
// launch more than otherwise. Parameters must be on a GPU.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(const Optimizer* owner) : owner_(owner) {}
  /// Graphs may outlive the optimiser, which may be moved.
  void set_owner(const Optimizer* owner) { owner_ = owner; }

  /// The numbers of a group, float64, on `device`. Up to date, unless a graph is captured: then they will be when it is
  /// replayed. Throws Error when they would have to be made during a capture.
  const Tensor& of_group(size_t group, Device device);
  /// Brings all up to date.
  void update();

 private:
  struct Entry {
    size_t group;
    Tensor on_device;
    std::vector<double> written;
  };
  void update(Entry& entry);

  const Optimizer* owner_;
  std::vector<Entry> entries_;
};

/// What a graph does before it takes a captured step again. It owns the memory that the step uses.
class CapturedStep final : public graphs::ReplayHook {
 public:
  CapturedStep(std::shared_ptr<DeviceNumbers> numbers, std::vector<Tensor> params, std::vector<Tensor> states)
      : numbers_(std::move(numbers)), params_(std::move(params)), states_(std::move(states)) {}
  void before_replay() override;

 private:
  std::shared_ptr<DeviceNumbers> numbers_;
  std::vector<Tensor> params_, states_;
};

/// Throws Error while a graph is captured: every replay would make a new state.
void check_state_can_be_made();
/// A number on the device of `param` that starts at `value`. Throws ValueError where that is no GPU, and as above.
Tensor make_device_number(const Tensor& param, const Scalar& value, ScalarType dtype);

}  // namespace rush::optim
