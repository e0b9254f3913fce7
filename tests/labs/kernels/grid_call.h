// Makes a call of a lab's kernels on the emulated grid.
#pragma once
#include "tests/labs/grid/grid.h"
#include "tests/labs/kernels/kernel_call.h"

namespace rush::labs {

// An input in memory of the emulated device.
inline std::unique_ptr<grid::Memory> to_grid(const Operand& input) {
  if (input.in_16_bits) return std::make_unique<grid::Buffer<__nv_bfloat16>>(input.name, input.rounded());
  return std::make_unique<grid::Buffer<float>>(input.name, input.values);
}

/// The call's outputs. `out` is the name that reports give them. Throws grid::Fault.
inline std::vector<float> outputs_on_grid(const KernelCall& call, const char* out = "out") {
  std::vector<std::unique_ptr<grid::Memory>> inputs;
  std::vector<const void*> data;
  for (const Operand& input : call.inputs) {
    inputs.push_back(to_grid(input));
    data.push_back(inputs.back()->begin());
  }
  const grid::Buffer<float> outputs(out, call.outputs);
  call.make(data, outputs.data());
  return outputs.values();
}

}  // namespace rush::labs
