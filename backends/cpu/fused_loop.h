// The CPU's loops of several element-wise kernels.
#pragma once
#include <memory>

#include "core/compile/element_wise_loop.h"

namespace rush::cpu {

std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description);

}  // namespace rush::cpu
