#pragma once
#include <vector>

#include "ATen/core/ivalue.h"
#include "torch/types.h"

namespace rush {

/// What torch.save writes for a tensor, a number or a text, and back. pickle_load throws TypeError for a dict or a
/// list: InputArchive reads those.
std::vector<char> pickle_save(const c10::IValue& value);
c10::IValue pickle_load(const std::vector<char>& data);

}  // namespace rush
