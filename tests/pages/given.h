// What the C++ of README.md and docs/ takes as given. The pages' snippets are compiled against it and never run: some
// want a GPU.
#pragma once

#include <rushlight.h>

#include "autograd/derivative.h"
#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/memory/memory.h"
#include "core/distributed/checkpoint.h"
#include "core/distributed/device_mesh.h"
#include "core/iterator/tensor_iterator.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/distribute_module.h"
#include "nn/parallel/fully_shard.h"
#include "nn/parallel/module_parts.h"
#include "nn/parallel/pipeline.h"
#include "nn/parallel/tensor_parallel.h"
#include "nn/summary/summary_writer.h"
#include "optim/state/state_parts.h"

using namespace rush;
namespace F = rush::nn::functional;
using nn::functional::cross_entropy;

// docs/add_a_backend.md
Allocator& memory();
extern Backend& backend;
extern const DeviceType sim;
bool all_float(const TensorIterator& it);

// docs/own_kernels.md
extern const char* source;

// A training: a module, its data, what changes it.
struct Numbers : data::datasets::Dataset<Numbers> {
  data::Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
};
extern Numbers dataset;
extern nn::Linear net, fc;
extern Tensor x, input, sample, loss;
extern optim::AdamW optimizer;
extern optim::StepLR schedule;
template <class... Inputs>
void train(const Inputs&... inputs);
inline auto make_loader() { return data::make_data_loader(dataset.map(data::transforms::Stack<>()), 64); }
extern const decltype(make_loader()) loader;
