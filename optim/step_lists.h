// StepLists: parameters, gradients and state gathered for the kernels of core/ops/optim.h.
#pragma once
#include <utility>
#include <vector>

#include "core/guard.h"
#include "core/tensor.h"

namespace rush::optim {

// The kernels take lists of tensors that agree in device and dtype, and in layout with their parameter. Tensors that
// do not are replaced by copies that do, and such parameters are written back in the end.
class StepLists {
 public:
  struct Batch {
    std::vector<Tensor> params, grads;
    std::vector<Tensor> states[3];
    std::vector<int64_t> steps;
    std::vector<double> mu_products;          // NAdam's
    std::vector<Tensor> step_counters;        // on the device, of capturable optimisers
    std::vector<Tensor> mu_product_counters;  // likewise
    bool flag;                                // what else the members of a batch have in common
  };

  // `states` are as large as `param`, and laid out alike. Returns the batch, until the next call.
  Batch& add(const Tensor& param, std::initializer_list<Tensor> states, int64_t step = 0, bool flag = false);
  // The same for a capturable optimiser.
  Batch& add(const Tensor& param, std::initializer_list<Tensor> states, const Tensor& step_counter);
  // Calls kernel(device type, batch) for every batch. Its device is current meanwhile: these kernels are not called
  // through an operator, which would see to that.
  template <class Kernel>
  void run(const Kernel& kernel) {
    for (const Batch& batch : batches_) {
      const Device device = batch.params[0].device();
      const DeviceGuard guard(device);
      kernel(device.type, batch);
    }
    finish();
  }

 private:
  void finish();
  Batch& batch_for(const Tensor& param, bool flag);
  Batch& add_to_batch(const Tensor& param, std::initializer_list<Tensor> states, bool flag);

  std::vector<Batch> batches_;
  std::vector<Tensor> written_;                          // the parameters
  std::vector<std::pair<Tensor, Tensor>> to_copy_back_;  // parameter, what was updated in its place
};

}  // namespace rush::optim
