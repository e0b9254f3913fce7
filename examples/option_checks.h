// What the programs ask of their options beyond each value's range, before they read any data. All throw
// rush::ValueError, one line that names the option.
#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// --device: "cpu", "cuda" or "cuda:1"; --graph only with the latter two. Does not look whether there is such a device.
void check_device(const std::string& device, bool graph = false);

/// --json: the folder in which the file is to be written is there. An empty path is no file.
void check_json_file(const std::string& path);

/// --n_embd, --n_head, --n_layer: the heads share the width evenly, and a transformer of this size, with
/// `bytes_per_parameter` of each of its parameters, fits into this machine's memory if it is to run on the CPU.
struct TransformerSize {
  int64_t n_layer, n_head, n_embd;
};
void check_transformer(const TransformerSize& size, int64_t bytes_per_parameter, const std::string& device);

}  // namespace examples
