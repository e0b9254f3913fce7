// State dicts as safetensors files, with what the format itself cannot say: what the file is of, complex128 and
// requires_grad.
#pragma once
#include <string>

#include "core/io/safetensors.h"
#include "optim/state/state_dict.h"

namespace rush::optim {

/// Writes `dict` to `path` as a file of `kind` ("module"). Throws as io::save_safetensors.
void write_state(const std::string& path, const std::string& kind, const StateDict& dict,
                 io::Checksum checksum = io::Checksum::None);

/// What write_state wrote, in CPU memory. A file that names no kind, of another program, is of any kind unless it has
/// to have a checksum. Throws IOError, in one line that starts with `path`, for a file that is damaged or of another
/// kind.
StateDict read_state(const std::string& path, const std::string& kind, io::Checksum checksum = io::Checksum::None);

}  // namespace rush::optim
