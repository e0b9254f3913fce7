// What a capstone's tests are made of: the test runner, and the fused kernel on the emulated grid.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "tests/labs/capstone/include/capstone.h"
#include "tests/labs/capstone/include/fused.h"
#include "tests/labs/grid/grid.h"

namespace capstone {

using namespace rush;

Tensor fused_on_grid(TensorList inputs, double number) {
  std::vector<std::unique_ptr<grid::Buffer<float>>> buffers;
  std::vector<const float*> pointers;
  for (const Tensor& input : inputs) {
    const Tensor values = input.contiguous();
    const float* data = values.data_ptr<float>();
    buffers.push_back(std::make_unique<grid::Buffer<float>>(str("input ", buffers.size()),
                                                            std::vector<float>(data, data + values.numel())));
    pointers.push_back(buffers.back()->data());
  }
  const Tensor& first = inputs[0];
  const grid::Buffer<float> out("out", first.numel());
  const int64_t columns = first.size(-1);
  fused(pointers.data(), static_cast<float>(number), out.data(), first.numel() / columns, columns);
  return tensor(out.values(), kFloat32).view(first.sizes());
}

int run_tests(std::initializer_list<Test> tests) {
  int failures = 0;
  for (const Test& test : tests) {
    std::string why;
    try {
      test.run();
    } catch (const std::exception& error) {
      why = error.what();
      why.resize(std::min(why.size(), why.find(" [called from")));  // the frames
      ++failures;
    }
    std::printf("%s %s%s%s\n", why.empty() ? "ok  " : "FAIL", test.name, why.empty() ? "" : ": ", why.c_str());
  }
  return failures;
}

}  // namespace capstone
