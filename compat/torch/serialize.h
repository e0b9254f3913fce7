#pragma once
#include <vector>

#include "ATen/core/ivalue.h"
#include "torch/types.h"

namespace rush {

/// What torch.save writes for a tensor, a number, a text or a dict of them by texts, and back. A dict of dicts and
/// lists is read as one dict, whose names are theirs joined by dots; a list of tensors as a list. Throws as
/// InputArchive and OutputArchive do.
std::vector<char> pickle_save(const c10::IValue& value);
c10::IValue pickle_load(const std::vector<char>& data);

}  // namespace rush
