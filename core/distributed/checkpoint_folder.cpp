#include "core/distributed/checkpoint_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error/error.h"
#include "core/geometry.h"
#include "core/io/array_bytes.h"
#include "core/io/read_file.h"
#include "core/memory/has_data.h"
#include "core/ops/view/copy.h"

namespace rush::distributed {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Entry = io::SafetensorsFile::Entry;

void read_part(const io::SafetensorsFile& file, const Entry& entry, const TensorPart& part) {
  const Tensor target = part.local.detach();
  const bool is_direct = target.device() == kCPU && target.is_contiguous();
  const Tensor staged = is_direct ? target : rush::detail::empty_contiguous(target.sizes(), target.scalar_type(), kCPU);
  char* const out = static_cast<char*>(staged.data_ptr());
  for (const detail::ByteRange& range : detail::ranges_of(part)) {
    file.read(entry, range.in_tensor, out + range.in_part, static_cast<size_t>(range.size));
  }
  if (is_direct) {
    target.bump_version();
  } else {
    target.copy_(staged);
  }
}

// The name of a file of the folder itself, and of no other one.
bool is_plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

}  // namespace

TensorPart TensorPart::whole(std::string name, Tensor tensor) {
  const DimVector sizes = tensor.sizes();
  return {std::move(name), std::move(tensor), sizes, DimVector(sizes.size(), 0)};
}

std::string detail::problem_of(const TensorPart& part) {
  const auto& [name, local, sizes, offsets] = part;
  if (!local.defined() || !rush::detail::has_data(local)) return str("the part of '", name, "' has no data");
  if (local.layout() != kStrided)
    return str("the part of '", name, "' is ", local.layout(), ", expected a dense tensor");
  bool fits = io::array_bytes(sizes, local.scalar_type()).has_value() && local.sizes().size() == sizes.size() &&
              offsets.size() == sizes.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    fits = sizes[d] >= 0 && offsets[d] >= 0 && offsets[d] <= sizes[d] && local.sizes()[d] <= sizes[d] - offsets[d];
  }
  return fits ? ""
              : str("a part of sizes ", local.sizes(), " at ", IntArrayRef(offsets), " does not lie in '", name,
                    "' of sizes ", IntArrayRef(sizes));
}

std::vector<detail::ByteRange> detail::ranges_of(const TensorPart& part) {
  const IntArrayRef box = part.local.sizes();
  const int64_t element = part.local.element_size();
  std::vector<ByteRange> ranges;
  if (part.local.numel() == 0) return ranges;
  // In the dimensions after `split` the box has all of the tensor: a range spans those, and the box's size in `split`.
  size_t split = box.size();
  int64_t size = element;
  for (bool complete = true; split > 0 && complete; complete = box[split] == part.sizes[split]) size *= box[--split];
  const DimVector strides = contiguous_strides(part.sizes);
  int64_t first = 0;  // element of the tensor
  for (size_t d = 0; d < box.size(); ++d) first += part.offsets[d] * strides[d];
  DimVector index(split, 0);
  for (int64_t in_part = 0;; in_part += size) {
    int64_t at = first;
    for (size_t d = 0; d < split; ++d) at += index[d] * strides[d];
    ranges.push_back(
        {static_cast<uint64_t>(at * element), static_cast<uint64_t>(in_part), static_cast<uint64_t>(size)});
    size_t d = split;
    while (d > 0 && ++index[d - 1] == box[d - 1]) index[--d] = 0;
    if (d == 0) return ranges;
  }
}

std::optional<detail::CheckpointIndex> detail::read_index(const std::string& folder) {
  const std::string path = folder + "/" + kIndexFile;
  std::error_code error;
  if (!fs::exists(path, error) && !error) return std::nullopt;
  const std::vector<uint8_t> text = io::read_file(path);
  CheckpointIndex index;
  try {
    const Json json = Json::parse(text);
    index.files = json.at("weight_map").get<std::map<std::string, std::string>>();
    if (json.contains("metadata")) {
      for (const auto& [key, value] : json["metadata"].items()) {
        if (value.is_string()) index.metadata[key] = value.get<std::string>();
      }
    }
  } catch (const Json::exception& failure) {
    RUSH_THROW(IOError, path, ": corrupt index: ", failure.what());
  }
  for (const auto& [name, file] : index.files) {
    RUSH_CHECK_IO(is_plain(file), path, ": corrupt index: tensor '", name, "' is said to be in '", file,
                  "', which is no name of a file in the folder");
  }
  return index;
}

CheckpointFolder::CheckpointFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  RUSH_CHECK_IO(fs::is_directory(path_, error), path_, ": there is no such folder");
  if (std::optional<detail::CheckpointIndex> index = detail::read_index(path_)) {
    index_ = std::move(*index);
    return;
  }
  const std::string file = path_ + "/" + detail::kSingleFile;
  RUSH_CHECK_IO(fs::exists(file, error), path_, ": there is no checkpoint in this folder: neither ", detail::kIndexFile,
                " nor ", detail::kSingleFile);
  const io::SafetensorsFile& opened = open_.try_emplace(detail::kSingleFile, file).first->second;
  for (const Entry& entry : opened.entries()) index_.files[entry.name] = detail::kSingleFile;
  index_.metadata = opened.metadata();
}

io::SafetensorsFile& CheckpointFolder::file_of(const std::string& name) {
  const std::string& file = index_.files.at(name);
  return open_.try_emplace(file, path_ + "/" + file).first->second;
}

const Entry* CheckpointFolder::find(const std::string& name) {
  if (!files().contains(name)) return nullptr;
  const Entry* const entry = file_of(name).find(name);
  RUSH_CHECK_IO(entry, path_, "/", files().at(name), ": has no tensor '", name, "', which the index says is there");
  return entry;
}

void CheckpointFolder::load(const std::vector<TensorPart>& parts) {
  std::string missing, wrong;
  std::vector<const Entry*> entries;
  for (const TensorPart& part : parts) {
    const std::string problem = detail::problem_of(part);
    RUSH_CHECK_VALUE(problem.empty(), "load_parts: ", problem);
    const Entry* const entry = entries.emplace_back(find(part.name));
    if (!entry) {
      missing += (missing.empty() ? "missing: " : ", ") + part.name;
    } else if (entry->dtype != part.local.scalar_type() || IntArrayRef(entry->shape) != IntArrayRef(part.sizes)) {
      wrong += str(wrong.empty() ? "wrong: " : ", ", part.name, " is ", entry->dtype, " ", IntArrayRef(entry->shape),
                   " instead of ", part.local.scalar_type(), " ", IntArrayRef(part.sizes));
    }
  }
  RUSH_CHECK_VALUE(missing.empty() && wrong.empty(), path_, ": the checkpoint does not fit; ", missing,
                   missing.empty() || wrong.empty() ? "" : "; ", wrong);
  for (size_t i = 0; i < parts.size(); ++i) read_part(file_of(parts[i].name), *entries[i], parts[i]);
}

io::Metadata load_parts(const std::string& folder, const std::vector<TensorPart>& parts) {
  CheckpointFolder checkpoint(folder);
  checkpoint.load(parts);
  return checkpoint.metadata();
}

}  // namespace rush::distributed
