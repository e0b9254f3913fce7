// Whether processes have the same parameters, before they rely on it.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/process_group.h"

namespace rush::nn::parallel {

/// Throws DistributedError, on every process of the group, where `tensors` differ between them in number, shape or
/// dtype. The message begins with `who`, and where this process differs from the group's first one it says in which of
/// the `names`. Every process calls it.
void check_same_everywhere(const char* who, const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                           const distributed::Group& group);

}  // namespace rush::nn::parallel
