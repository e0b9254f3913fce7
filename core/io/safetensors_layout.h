// Where the tensors of a safetensors file lie: what a writer decides before it writes.
#pragma once
#include <string>
#include <vector>

#include "core/io/safetensors.h"

namespace rush::io {

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";  // no tensor has this name

/// Gives each tensor its place in a new file: sets its `begin` and `end`, from its dtype and shape. Wide elements come
/// first, so that every tensor is aligned to its own, otherwise the order is the caller's. Returns the bytes before the
/// first tensor: the header and its length. Throws ValueError for a name that is given twice, is not UTF-8 or is
/// "__metadata__", and for a shape of more than 2^63 bytes; TypeError for a dtype that the format lacks.
std::string lay_out_safetensors(std::vector<SafetensorsFile::Entry>& entries, const Metadata& metadata);

}  // namespace rush::io
