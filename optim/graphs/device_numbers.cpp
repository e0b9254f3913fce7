#include "optim/graphs/device_numbers.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/factory/tensor_data.h"
#include "optim/optimizer.h"

namespace rush::optim {

const Tensor& DeviceNumbers::of_group(size_t group, Device device) {
  for (Entry& entry : entries_) {
    if (entry.group != group || !(entry.on_device.device() == device)) continue;
    if (!graphs::is_capturing()) update(entry);
    return entry.on_device;
  }
  check_state_can_be_made();
  const std::vector<double> numbers = owner_->param_groups()[group].options().device_numbers();
  const Tensor on_device = tensor(ArrayRef<double>(numbers), TensorOptions(kFloat64).device(kCPU)).to(device);
  return entries_.emplace_back(Entry{group, on_device, numbers}).on_device;
}

void DeviceNumbers::update(Entry& entry) {
  const std::vector<double> now = owner_->param_groups()[entry.group].options().device_numbers();
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] != entry.written[i]) entry.on_device.select(0, static_cast<int64_t>(i)).fill_(now[i]);
  }
  entry.written = now;
}

void DeviceNumbers::update() {
  if (!owner_) return;
  const NoGradGuard no_grad;
  for (Entry& entry : entries_) update(entry);
}

void CapturedStep::before_replay() {
  numbers_->update();
  for (const Tensor& param : params_) param.bump_version();
}

void check_state_can_be_made() {
  RUSH_CHECK(!graphs::is_capturing(),
             "optimizer: its state cannot be made while a graph is captured; take a step before the capture");
}

Tensor make_device_number(const Tensor& param, const Scalar& value, ScalarType dtype) {
  RUSH_CHECK_VALUE(param.device().is_accelerator(),
                   "optimizer: the option capturable needs parameters on a GPU, one is on ", param.device());
  check_state_can_be_made();
  return full({}, value, TensorOptions(dtype).device(param.device()));
}

}  // namespace rush::optim
