// What a stream of the emulated accelerator is given.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace rush::labs {

// Bytes that a kernel reads or writes, from the first to the last element of a tensor.
struct Access {
  const void* block;  // where the memory's block begins
  const char *begin, *end;
  bool writes;
  std::string tensor;  // its dtype and shape
  uint64_t use = 0;    // which use of the block it was when the work was given
};

// A kernel with its arguments. It has the addresses of its tensors and does not keep their memory, as on a GPU.
struct Work {
  std::string op;
  std::vector<Access> accesses;
  std::function<void()> run;
};
using SharedWork = std::shared_ptr<const Work>;

}  // namespace rush::labs
