// The safetensors format: tensors by name in one file, behind a JSON header that says where each lies.
// Described at https://github.com/huggingface/safetensors#format. Nothing in such a file is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/io/input_file.h"
#include "core/tensor.h"

namespace rush::io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::map<std::string, std::string>;

/// Whether a last tensor, "__crc32__", holds the checksum of all bytes before it.
enum class Checksum { None, Crc32 };

/// Writes the tensors, row-major, to `path`: the old file or the whole new one is there, never a part. Tensors that
/// share memory are written out one by one. Dtypes: all but complex128. Throws ValueError for a name that is given
/// twice, is not UTF-8 or is "__metadata__", and for a tensor that is undefined, sparse or without data; TypeError for
/// a dtype that the format lacks; IOError if the file cannot be written.
void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {},
                      Checksum checksum = Checksum::None);

/// Reads all tensors of `path` into CPU memory, in the order in which the header names them.
/// Throws IOError, as SafetensorsFile does.
NamedTensors load_safetensors(const std::string& path);

/// An open safetensors file: its header is parsed and checked once, tensors are read one by one.
/// The file is taken for hostile: a header is believed only when every dtype, shape and range of bytes agree and the
/// ranges cover the data exactly, without a gap or an overlap.
class SafetensorsFile {
 public:
  /// What the header says of one tensor.
  struct Entry {
    std::string name;
    ScalarType dtype;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // where its bytes lie in the file
  };

  /// Throws IOError, one line that starts with `path`, if it cannot be read or is not a valid safetensors file, and
  /// NotImplementedError if it is one with a dtype that Rushlight lacks.
  explicit SafetensorsFile(const std::string& path);

  /// Reads the whole file and compares its checksum, which is no entry afterwards. Throws IOError if there is none or
  /// another one: a bit was flipped.
  void verify_checksum();

  /// The tensors, in the header's order.
  const std::vector<Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  /// Null if there is no tensor of this name.
  const Entry* find(std::string_view name) const;
  /// A new CPU tensor. Throws IOError if there is none of this name, its bytes cannot be read or are no values of its
  /// dtype (a bool that is neither 0 nor 1).
  Tensor read(std::string_view name) const;
  Tensor read(const Entry& entry) const;
  /// Copies `size` bytes of the tensor, from its byte `offset` on, into `out`. Throws IOError likewise.
  void read(const Entry& entry, uint64_t offset, void* out, size_t size) const;

 private:
  InputFile file_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;  // into entries_, whose names it views
  Metadata metadata_;
};

}  // namespace rush::io
