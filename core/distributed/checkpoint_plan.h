// CheckpointPlan: who writes which part of which tensor to which place.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/checkpoint_folder.h"

namespace rush::distributed::detail {

struct CheckpointPlan {
  struct File {
    std::string name, start;  // what comes before the tensors
  };
  struct Write {
    size_t part, file;  // its place among the parts that this process has given
    uint64_t begin;     // of the tensor in the file
  };
  std::vector<File> files;
  std::vector<Write> writes;  // of this process
  std::string index;
};

/// What a process says of its parts. Of the rest, what the first process says counts. Throws ValueError.
std::string describe(const std::vector<TensorPart>& parts, const io::Metadata& metadata, uint64_t max_file_bytes,
                     uint64_t number);

/// The plan of the member `rank` of `ranks`, from what all have said: their files and places are the same on all.
/// Throws ValueError, the same on all, where the parts of a tensor do not agree, overlap or do not cover it.
CheckpointPlan make_plan(const std::vector<std::string>& said, const std::vector<int>& ranks, size_t rank);

/// The name of the file `i` of `count` of the save `number`; and whether a name is one, and of which save.
std::string file_name(uint64_t number, size_t i, size_t count);
std::optional<uint64_t> save_number(const std::string& file);

}  // namespace rush::distributed::detail
