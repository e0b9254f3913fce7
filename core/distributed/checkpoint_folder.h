// CheckpointFolder: a folder of safetensors files, and the parts of tensors that a process reads from them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.h"

namespace rush::distributed {

// Note [Checkpoint folders]
// A checkpoint is a folder of ordinary safetensors files, in each of which tensors lie whole, and of Hugging Face's
// index, model.safetensors.index.json:
//
//   {"metadata": {"total_size": 1400, "step": "300"},
//    "weight_map": {"head.weight": "model-7-00001-of-00002.safetensors", "tokens.weight":
//    "model-7-00002-of-00002...."}}
//
// It says nothing of the processes that have written it. A part of a tensor is a box: `sizes` from `offsets` on in each
// dimension. In a file it is a number of contiguous ranges of bytes: one, where the box has all of the tensor but in
// the first dimension. So each process reads and writes what it wants to have, and a file never tells who did.
//
// The files of one save have its number in their names (7 above), and the index, which AtomicFile replaces last, makes
// them the checkpoint: before that all readers find the files of number 6, afterwards those of number 7. A process that
// is killed leaves files that no index names, which the next save removes, as it does those of the checkpoint before.

/// What a process has of a tensor: the box of `local`'s sizes that begins at `offsets` in a tensor of the sizes
/// `sizes`.
struct TensorPart {
  std::string name;
  Tensor local;
  DimVector sizes, offsets;

  /// All of a tensor.
  static TensorPart whole(std::string name, Tensor tensor);
};

namespace detail {
struct CheckpointIndex {
  std::map<std::string, std::string> files;  // by the names of the tensors
  io::Metadata metadata;
};
}  // namespace detail

/// A checkpoint that save_parts has written, or another program in Hugging Face's format: with an index, or one file
/// named model.safetensors. Files are opened when one of their tensors is asked for. Of one process: other processes
/// need not take part.
class CheckpointFolder {
 public:
  /// Throws IOError, in one line that starts with `path`, where there is no such folder, no checkpoint in it, or an
  /// index that is damaged.
  explicit CheckpointFolder(std::string path);

  /// The tensors' names, with the file that each is in.
  const std::map<std::string, std::string>& files() const { return index_.files; }
  /// SaveOptions::metadata.
  const io::Metadata& metadata() const { return index_.metadata; }
  /// Dtype and shape of a tensor; null if there is none of this name. Throws as load where its file is damaged.
  const io::SafetensorsFile::Entry* find(const std::string& name);
  /// Fills each part's `local`, past autograd; only its bytes are read. Throws ValueError, and changes nothing, unless
  /// all tensors are there with the parts' sizes and dtypes, and the boxes lie in them; the message lists all that are
  /// missing or different. Throws IOError where a file cannot be read or is damaged: a part's values are then the old
  /// or the new ones, or, where reading stopped within it, both.
  void load(const std::vector<TensorPart>& parts);

 private:
  io::SafetensorsFile& file_of(const std::string& name);

  std::string path_;
  detail::CheckpointIndex index_;
  std::map<std::string, io::SafetensorsFile> open_;
};

/// CheckpointFolder(folder).load(parts), and its metadata.
io::Metadata load_parts(const std::string& folder, const std::vector<TensorPart>& parts);

namespace detail {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kSingleFile = "model.safetensors";  // of other programs, without an index

/// What is wrong with a part that is no box of dense values in a tensor of its sizes; otherwise empty.
std::string problem_of(const TensorPart& part);

/// Contiguous bytes that a part and its tensor have in common.
struct ByteRange {
  uint64_t in_tensor, in_part, size;
};
/// All of a part, in the order of the bytes: `in_part` as if it were contiguous, `in_tensor` as in a file.
std::vector<ByteRange> ranges_of(const TensorPart& part);

/// Nothing where the folder has none. Throws IOError for one that is damaged.
std::optional<CheckpointIndex> read_index(const std::string& folder);

}  // namespace detail

}  // namespace rush::distributed
