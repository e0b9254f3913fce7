#include "core/distributed/checkpoint_plan.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error/error.h"
#include "core/io/safetensors_layout.h"
#include "core/ops/basic.h"

namespace rush::distributed::detail {

namespace {

using Json = nlohmann::json;
using Sizes = std::vector<int64_t>;
using Entry = io::SafetensorsFile::Entry;

struct Box {
  Sizes offsets, sizes;
  auto operator<=>(const Box&) const = default;

  std::string text() const { return str("sizes ", IntArrayRef(sizes), " at ", IntArrayRef(offsets)); }
  int64_t numel() const { return checked_numel(sizes); }
  int64_t end(size_t d) const { return offsets[d] + sizes[d]; }
  bool overlaps(const Box& other) const {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (offsets[d] >= other.end(d) || other.offsets[d] >= end(d)) return false;
    }
    return true;
  }
};

struct Holder {
  size_t member, part;
};

struct PlannedTensor {
  Entry entry;
  size_t first;                                // the member that has named it first
  std::map<Box, std::vector<Holder>> boxes{};  // those that are not empty
  size_t file = 0;
};

// All tensors, in the order in which the members name them.
class Plan {
 public:
  Plan(const std::vector<std::string>& said, const std::vector<int>& ranks) : ranks_(ranks) {
    for (size_t member = 0; member < said.size(); ++member) {
      const Json parts = Json::parse(said[member]).at("parts");
      for (size_t i = 0; i < parts.size(); ++i) add(parts[i], {member, i});
    }
    for (const PlannedTensor& tensor : tensors_) check_cover(tensor);
  }

  // Each file's tensors are neighbours in the list.
  void lay_out(CheckpointPlan& plan, io::Metadata metadata, uint64_t number, uint64_t max_file_bytes) {
    std::vector<Entry> all;
    for (const PlannedTensor& tensor : tensors_) all.push_back(tensor.entry);
    io::lay_out_safetensors(all, {});  // checks them, and says how long they are
    std::vector<std::vector<Entry>> files;
    uint64_t filled = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint64_t bytes = all[i].end - all[i].begin;
      if (files.empty() || (filled > 0 && bytes > max_file_bytes - std::min(filled, max_file_bytes))) {
        files.emplace_back();
        filled = 0;
      }
      filled += bytes;
      tensors_[i].file = files.size() - 1;
      files.back().push_back(all[i]);
    }

    Json index = {{"metadata", metadata}, {"weight_map", Json::object()}};
    uint64_t total = 0;
    metadata.emplace("format", "pt");  // without which Hugging Face's transformers refuse metadata
    auto next = tensors_.begin();
    for (size_t f = 0; f < files.size(); ++f) {
      const std::string name = file_name(number, f, files.size());
      plan.files.push_back({name, io::lay_out_safetensors(files[f], metadata)});
      for (const Entry& entry : files[f]) {
        index["weight_map"][entry.name] = name;
        total += entry.end - entry.begin;
        (next++)->entry = entry;
      }
    }
    index["metadata"]["total_size"] = total;
    plan.index = index.dump();
  }

  void share_out(CheckpointPlan& plan, size_t rank) const {
    std::vector<uint64_t> loads(ranks_.size());
    for (const PlannedTensor& tensor : tensors_) {
      for (const auto& [box, holders] : tensor.boxes) {
        const Holder writer = *std::ranges::min_element(holders, {}, [&](const Holder& h) { return loads[h.member]; });
        loads[writer.member] += static_cast<uint64_t>(box.numel() * element_size(tensor.entry.dtype));
        if (writer.member == rank) plan.writes.push_back({writer.part, tensor.file, tensor.entry.begin});
      }
    }
  }

 private:
  void add(const Json& part, Holder holder) {
    const auto name = part.at(0).get<std::string>();
    const auto dtype = static_cast<ScalarType>(part.at(1).get<int>());
    const auto sizes = part.at(2).get<Sizes>();
    const Box box{part.at(3).get<Sizes>(), part.at(4).get<Sizes>()};
    const auto [place, is_new] = places_.emplace(name, tensors_.size());
    if (is_new) tensors_.push_back({{name, dtype, sizes, 0, 0}, holder.member});
    PlannedTensor& tensor = tensors_[place->second];
    RUSH_CHECK_VALUE(tensor.entry.dtype == dtype && tensor.entry.shape == sizes, "save_parts: tensor '", name, "' is ",
                     tensor.entry.dtype, " ", IntArrayRef(tensor.entry.shape), " on rank ", ranks_[tensor.first],
                     " and ", dtype, " ", IntArrayRef(sizes), " on rank ", ranks_[holder.member]);
    if (box.numel() > 0) tensor.boxes[box].push_back(holder);
  }

  // Boxes that lie in the tensor, do not overlap and have as many elements are all of it.
  void check_cover(const PlannedTensor& tensor) const {
    int64_t covered = 0;
    for (auto box = tensor.boxes.begin(); box != tensor.boxes.end(); ++box) {
      covered += box->first.numel();
      // In the order of their offsets: those behind the last begin after this one in the first dimension.
      for (auto other = std::next(box); other != tensor.boxes.end(); ++other) {
        if (other->first.offsets[0] >= box->first.end(0)) break;
        RUSH_CHECK_VALUE(!other->first.overlaps(box->first), "save_parts: parts of tensor '", tensor.entry.name,
                         "' overlap: rank ", ranks_[box->second[0].member], " has ", box->first.text(), ", rank ",
                         ranks_[other->second[0].member], " has ", other->first.text());
      }
    }
    const int64_t numel = checked_numel(tensor.entry.shape);
    RUSH_CHECK_VALUE(covered == numel, "save_parts: the parts of tensor '", tensor.entry.name, "' of sizes ",
                     IntArrayRef(tensor.entry.shape), " cover ", covered, " of its ", numel,
                     " elements; every element must be in a part of some process");
  }

  const std::vector<int>& ranks_;
  std::vector<PlannedTensor> tensors_;
  std::map<std::string, size_t> places_;
};

bool have_same_values(const Tensor& a, const Tensor& b) {
  const bool are_one = a.data_ptr() == b.data_ptr() && a.strides() == b.strides();  // which may hold NaN
  return a.scalar_type() == b.scalar_type() && (are_one || equal(a.detach().cpu(), b.detach().cpu()));
}

}  // namespace

std::string describe(const std::vector<TensorPart>& parts, const io::Metadata& metadata, uint64_t max_file_bytes,
                     uint64_t number) {
  RUSH_CHECK_VALUE(!metadata.contains("total_size"),
                   "'total_size' is no key for metadata: the index has a number of this name");
  const auto list = [](IntArrayRef values) { return Sizes(values.begin(), values.end()); };
  Json said = {
      {"parts", Json::array()}, {"metadata", metadata}, {"max_file_bytes", max_file_bytes}, {"number", number}};
  std::map<std::pair<std::string, Box>, const Tensor*> places;
  for (const TensorPart& part : parts) {
    const std::string problem = problem_of(part);
    RUSH_CHECK_VALUE(problem.empty(), problem);
    const auto [other, is_new] =
        places.try_emplace({part.name, {list(part.offsets), list(part.local.sizes())}}, &part.local);
    RUSH_CHECK_VALUE(is_new || have_same_values(*other->second, part.local), "tensor '", part.name,
                     "' is given twice, with values that differ; give each tensor a name of its own");
    said["parts"].push_back(Json::array({part.name, static_cast<int>(part.local.scalar_type()), list(part.sizes),
                                         list(part.offsets), list(part.local.sizes())}));
  }
  try {
    return said.dump();
  } catch (const Json::exception&) {
    RUSH_THROW(ValueError, "a name or metadata is not UTF-8 text");
  }
}

CheckpointPlan make_plan(const std::vector<std::string>& said, const std::vector<int>& ranks, size_t rank) {
  const Json first = Json::parse(said[0]);
  Plan tensors(said, ranks);
  CheckpointPlan plan;
  tensors.lay_out(plan, first.at("metadata").get<io::Metadata>(), first.at("number").get<uint64_t>(),
                  first.at("max_file_bytes").get<uint64_t>());
  tensors.share_out(plan, rank);
  return plan;
}

std::string file_name(uint64_t number, size_t i, size_t count) {
  char places[64];
  std::snprintf(places, sizeof places, "-%05zu-of-%05zu", i + 1, count);
  return str("model-", number, places, ".safetensors");
}

std::optional<uint64_t> save_number(const std::string& file) {
  unsigned long long number = 0;
  size_t i = 0, count = 0;
  const bool is_one = std::sscanf(file.c_str(), "model-%llu-%zu-of-%zu.safetensors", &number, &i, &count) == 3 &&
                      file_name(number, i - 1, count) == file;
  return is_one ? std::optional<uint64_t>(number) : std::nullopt;
}

}  // namespace rush::distributed::detail
