#include "optim/state/state_file.h"

#include "core/device/out_of_memory.h"
#include "core/ops/view/view.h"

namespace rush::optim {

namespace {

constexpr const char* kKindKey = "rushlight.kind";
constexpr const char* kWideKey = "rushlight.complex128.";  // then a name: saved as (..., 2) float64
constexpr const char* kGradKey = "rushlight.requires_grad.";

bool has(const io::Metadata& metadata, const char* attribute, const std::string& name) {
  return metadata.contains(attribute + name);
}

StateDict read_dict(const std::string& path, const std::string& kind, io::Checksum checksum) {
  io::SafetensorsFile file(path);
  const bool checked = checksum == io::Checksum::Crc32;
  if (checked) file.verify_checksum();
  const io::Metadata& metadata = file.metadata();
  const auto found = metadata.find(kKindKey);
  const std::string actual = found == metadata.end() ? (checked ? "unknown" : kind) : found->second;
  RUSH_CHECK_IO(actual == kind, path, ": expected a file of kind '", kind, "', this one is of kind '", actual, "'");

  StateDict dict("state");
  for (const io::SafetensorsFile::Entry& entry : file.entries()) {
    Tensor value = file.read(entry);
    if (has(metadata, kWideKey, entry.name)) {
      RUSH_CHECK_IO(entry.dtype == kFloat64 && value.dim() > 0 && value.size(-1) == 2, path, ": corrupt: tensor '",
                    entry.name, "' holds no pairs of float64 for complex128");
      value = view_as_complex(value).clone();
    }
    if (has(metadata, kGradKey, entry.name)) {
      RUSH_CHECK_IO(value.is_floating_point() || value.is_complex(), path, ": corrupt: tensor '", entry.name,
                    "' is said to require a gradient and is ", value.scalar_type());
      value.requires_grad_();
    }
    dict.insert(entry.name, value);
  }
  return dict;
}

}  // namespace

void write_state(const std::string& path, const std::string& kind, const StateDict& dict, io::Checksum checksum) {
  translate_bad_alloc("save", [&] {
    io::NamedTensors tensors;
    io::Metadata metadata{{kKindKey, kind}};
    for (const StateDict::Item& item : dict) {
      Tensor value = item.value();
      const bool wide = value.defined() && value.scalar_type() == kComplex128;
      if (wide) metadata[kWideKey + item.key()] = "";
      if (value.requires_grad()) metadata[kGradKey + item.key()] = "";
      tensors.emplace_back(item.key(), wide ? view_as_real(value.detach()) : value);
    }
    io::save_safetensors(path, tensors, metadata, checksum);
  });
}

StateDict read_state(const std::string& path, const std::string& kind, io::Checksum checksum) {
  return translate_bad_alloc("load", [&] { return read_dict(path, kind, checksum); });
}

}  // namespace rush::optim
