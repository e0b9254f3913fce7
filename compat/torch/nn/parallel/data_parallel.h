// nn::parallel: a module's copies on several devices, each with a part of the batch. For training on many GPUs, see
// DistributedDataParallel.
#pragma once
#include <exception>

#include "torch/types.h"

namespace rush::nn::parallel {

/// Copies of the module on these devices, whose gradients arrive at the module's parameters.
template <class M>
std::vector<std::shared_ptr<M>> replicate(const std::shared_ptr<M>& module, const std::vector<Device>& devices) {
  std::vector<std::shared_ptr<M>> replicas;
  const std::vector<Tensor> parameters = module->parameters();
  for (const Device& device : devices) {
    replicas.push_back(std::dynamic_pointer_cast<M>(module->clone(device)));
    const std::vector<Tensor> copies = replicas.back()->parameters();
    for (size_t i = 0; i < copies.size(); ++i) {
      Tensor copy = copies[i];
      if (!copy.requires_grad()) continue;
      copy.requires_grad_(false);
      copy.copy_(parameters[i]);  // recorded: the copy is no leaf any more
    }
  }
  return replicas;
}
template <class M>
std::vector<ModuleHolder<M>> replicate(const ModuleHolder<M>& module, const std::vector<Device>& devices) {
  const auto replicas = replicate(module.ptr(), devices);
  return {replicas.begin(), replicas.end()};
}

/// What each module makes of its input, on the input's device or on that of `devices`. Each runs on a thread of its
/// own.
template <class M>
std::vector<Tensor> parallel_apply(std::vector<M>& modules, const std::vector<Tensor>& inputs,
                                   const std::optional<std::vector<Device>>& devices = std::nullopt) {
  RUSH_CHECK(modules.size() == inputs.size(), "Must have as many inputs as modules");
  RUSH_CHECK(!devices || modules.size() == devices->size(), "Must have as many devices as modules");
  std::vector<Tensor> outputs(modules.size());
  std::vector<std::exception_ptr> failures(modules.size());
  std::vector<rush::detail::Thread> threads;
  const bool recording = GradMode::is_enabled();
  for (size_t i = 0; i < modules.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const AutoGradMode as_the_caller(recording);
        outputs[i] = modules[i]->forward(inputs[i]).to(devices ? (*devices)[i] : inputs[i].device());
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  threads.clear();  // waits for them
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return outputs;
}

/// The module's output for `input`, whose parts along `dim` go to the devices, by default all GPUs; the output is on
/// `output_device`, by default the first.
template <class M>
Tensor data_parallel(M module, Tensor input, std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, int64_t dim = 0) {
  if (!devices) {
    const auto count = static_cast<int>(cuda::device_count());
    RUSH_CHECK(count > 0, "Expected at least one CUDA device to be available");
    devices.emplace();
    for (int i = 0; i < count; ++i) devices->push_back(Device(kCUDA, static_cast<int8_t>(i)));
  }
  RUSH_CHECK(!devices->empty(), "data_parallel: there is no device in the list");
  const Device target = output_device.value_or(devices->front());
  if (devices->size() == 1) {
    module->to(devices->front());
    return module->forward(input.to(devices->front())).to(target);
  }
  std::vector<Tensor> parts = input.chunk(static_cast<int64_t>(devices->size()), dim);
  devices->resize(parts.size(), devices->front());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].to((*devices)[i]);
  auto replicas = replicate(module, *devices);
  std::vector<Tensor> outputs = parallel_apply(replicas, parts, *devices);
  for (Tensor& output : outputs) output = output.to(target);
  return cat(outputs, dim);
}

}  // namespace rush::nn::parallel
