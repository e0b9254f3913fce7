#include "core/io/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "core/error/error.h"
#include "core/io/array_bytes.h"
#include "core/io/atomic_file.h"
#include "core/io/crc32.h"
#include "core/io/little_endian.h"
#include "core/io/safetensors_layout.h"
#include "core/memory/has_data.h"

namespace rush::io {
namespace {

using Json = nlohmann::json;
using Entry = SafetensorsFile::Entry;

constexpr uint64_t kLengthSize = 8;           // of the header's length, which begins the file
constexpr uint64_t kMaxHeader = 100'000'000;  // as the reference implementation
constexpr size_t kMaxDims = 64;               // as PyTorch
constexpr std::string_view kChecksumName = "__crc32__";
constexpr uint8_t kChecksumSize = 4;

std::optional<ScalarType> dtype_named(std::string_view name) {
  for (int i = 0; i < kNumScalarTypes && !name.empty(); ++i) {
    if (kDtypeTraits[i].safetensors == name) return static_cast<ScalarType>(i);
  }
  return std::nullopt;
}

// Receives the header's tokens from the parser. Only one form is accepted,
//   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"KEY": "TEXT", ...}},
// so no tree is built, which hostile input could make deep, and a key that comes twice is noticed.
class HeaderHandler final : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(const std::string& path, std::vector<Entry>* entries, Metadata* metadata)
      : path_(path), entries_(entries), metadata_(metadata) {}

  bool start_object(size_t) override {
    switch (at_) {
      case At::Start: at_ = At::Header; return true;
      case At::TensorValue:
        at_ = At::Tensor;
        has_dtype_ = has_shape_ = has_offsets_ = false;
        return true;
      case At::MetadataValue: at_ = At::MetadataObject; return true;
      default: return unexpected("an object");
    }
  }

  bool end_object() override {
    if (at_ == At::Tensor) {
      RUSH_CHECK_IO(has_dtype_ && has_shape_ && has_offsets_, path_, ": corrupt header: tensor '", entry().name,
                    "' lacks its dtype, shape or data_offsets");
    }
    at_ = at_ == At::Header ? At::End : At::Header;
    return true;
  }

  bool key(std::string& key) override {
    if (at_ == At::Header) {
      RUSH_CHECK_IO(names_.insert(key).second, path_, ": corrupt header: '", key, "' comes twice");
      at_ = key == kSafetensorsMetadata ? At::MetadataValue : At::TensorValue;
      if (at_ == At::TensorValue) entries_->push_back({key, kUInt8, {}, 0, 0});
    } else if (at_ == At::MetadataObject) {
      RUSH_CHECK_IO(metadata_->emplace(key, "").second, path_, ": corrupt header: metadata '", key, "' comes twice");
      key_ = key;
      at_ = At::MetadataText;
    } else {
      bool& seen = key == "dtype" ? has_dtype_ : key == "shape" ? has_shape_ : has_offsets_;
      RUSH_CHECK_IO(key == "dtype" || key == "shape" || key == "data_offsets", path_, ": corrupt header: tensor '",
                    entry().name, "' has an unknown key '", key, "'");
      RUSH_CHECK_IO(!seen, path_, ": corrupt header: '", key, "' of tensor '", entry().name, "' comes twice");
      seen = true;
      at_ = key == "dtype" ? At::Dtype : key == "shape" ? At::Shape : At::Offsets;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (at_ == At::MetadataText) {
      (*metadata_)[key_] = text;
      at_ = At::MetadataObject;
      return true;
    }
    if (at_ != At::Dtype) return unexpected("a string");
    const std::optional<ScalarType> dtype = dtype_named(text);
    RUSH_CHECK_NOT_IMPLEMENTED(dtype, path_, ": tensor '", entry().name, "' has the unsupported dtype '", text, "'");
    entry().dtype = *dtype;
    at_ = At::Tensor;
    return true;
  }

  bool start_array(size_t) override {
    if (at_ != At::Shape && at_ != At::Offsets) return unexpected("an array");
    at_ = at_ == At::Shape ? At::ShapeList : At::OffsetsList;
    offsets_.clear();
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (at_ == At::ShapeList) {
      RUSH_CHECK_IO(number <= std::numeric_limits<int64_t>::max() && entry().shape.size() < kMaxDims, path_,
                    ": corrupt header: tensor '", entry().name, "' has an absurd shape");
      entry().shape.push_back(static_cast<int64_t>(number));
    } else if (at_ == At::OffsetsList && offsets_.size() < 2) {
      offsets_.push_back(number);
    } else {
      return unexpected("a number");
    }
    return true;
  }

  bool end_array() override {
    if (at_ == At::OffsetsList) {
      RUSH_CHECK_IO(offsets_.size() == 2, path_, ": corrupt header: tensor '", entry().name,
                    "' needs two data_offsets");
      entry().begin = offsets_[0];
      entry().end = offsets_[1];
    }
    at_ = At::Tensor;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a fraction"); }
  bool binary(Json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    RUSH_THROW(IOError, path_, ": corrupt header: no JSON from byte ", kLengthSize + position, " on");
  }

 private:
  enum class At {
    Start,
    Header,
    TensorValue,
    Tensor,
    Dtype,
    Shape,
    ShapeList,
    Offsets,
    OffsetsList,
    MetadataValue,
    MetadataObject,
    MetadataText,
    End
  };

  Entry& entry() { return entries_->back(); }
  [[noreturn]] bool unexpected(const char* what) {
    const bool in_tensor = at_ >= At::TensorValue && at_ <= At::OffsetsList;
    RUSH_THROW(IOError, path_, ": corrupt header: unexpected ", what, in_tensor ? " in tensor '" : "",
               in_tensor ? entry().name : "", in_tensor ? "'" : "");
  }

  const std::string& path_;
  std::vector<Entry>* entries_;
  Metadata* metadata_;
  At at_ = At::Start;
  std::unordered_set<std::string> names_;
  std::string key_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::vector<uint64_t> offsets_;
};

// Files that are given instead of a safetensors file, by their first bytes.
struct OtherFormat {
  std::string_view magic;
  const char* advice;
};
constexpr const char* kConvert =
    "convert it in Python: safetensors.torch.save_file(torch.load('name.pt', map_location='cpu', weights_only=True), "
    "'name.safetensors')";
constexpr OtherFormat kOtherFormats[] = {
    {"PK\x03\x04",
     "a zip archive: io::load_pt reads those of torch.save (.pt, .pth), io::load_npz those of NumPy (.npz)"},
    {"\x80\x02\x8a\x0a", "a pickle, as torch.save of old wrote it (.pt, .pth)"},
    {"\x80\x04\x95", "a Python pickle"},
    {"\x93NUMPY", "an npy file, which io::load_npy reads"},
    {"GGUF", "a GGUF file"},
    {"\x89HDF", "an HDF5 file"},
    {"\x1f\x8b", "compressed with gzip: unpack it first"},
    {"\x08", "an ONNX model, which onnx::load_model reads"},  // ir_version
};

// Throws IOError that says what the file is, where its first bytes tell.
void check_format(const InputFile& file) {
  char first[8] = {};
  file.read(0, first, std::min<size_t>(sizeof(first), file.size()));
  const std::string_view start(first, sizeof(first));
  const bool is_length = start.substr(4) == std::string_view("\0\0\0\0", 4);  // of a header that is cut off
  for (const OtherFormat& other : kOtherFormats) {
    if (!start.starts_with(other.magic) || (is_length && other.magic.size() == 1)) continue;
    const bool from_python = start.starts_with('\x80');
    RUSH_THROW(IOError, file.path(), ": not a safetensors file: it is ", other.advice, from_python ? "; " : "",
               from_python ? kConvert : "");
  }
}

std::string read_header(const InputFile& file) {
  uint8_t little_endian[kLengthSize];
  RUSH_CHECK_IO(file.size() >= kLengthSize, file.path(), ": truncated: no safetensors file has only ", file.size(),
                " bytes");
  file.read(0, little_endian, kLengthSize);
  const uint64_t length = get_little_endian(little_endian, kLengthSize);
  if (length > kMaxHeader || length > file.size() - kLengthSize) check_format(file);
  RUSH_CHECK_IO(length <= kMaxHeader, file.path(), ": not a safetensors file: it announces a header of ", length,
                " bytes, at most ", kMaxHeader, " are accepted");
  RUSH_CHECK_IO(length <= file.size() - kLengthSize, file.path(), ": truncated: the header needs ", length,
                " bytes, the file has ", file.size() - kLengthSize, " for it");
  std::string header(static_cast<size_t>(length), '\0');
  file.read(kLengthSize, header.data(), header.size());
  if (!header.starts_with('{')) check_format(file);
  RUSH_CHECK_IO(header.starts_with('{'), file.path(), ": not a safetensors file: its header does not begin with '{'");
  return header;
}

// Every tensor has the bytes that its dtype and shape ask for, and together they are all of the data.
void check_ranges(const std::string& path, const std::vector<Entry>& entries, uint64_t data_size) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(entries[i].begin, entries[i].end); });
  uint64_t covered = 0;
  for (const size_t i : order) {
    const Entry& entry = entries[i];
    RUSH_CHECK_IO(entry.begin <= entry.end && entry.end <= data_size, path, ": truncated or corrupt: tensor '",
                  entry.name, "' lies at bytes ", entry.begin, " to ", entry.end, " of ", data_size);
    const std::optional<uint64_t> bytes = array_bytes(entry.shape, entry.dtype);
    RUSH_CHECK_IO(bytes, path, ": corrupt header: tensor '", entry.name, "' of shape ", entry.shape,
                  " has more than 2^63 bytes");
    RUSH_CHECK_IO(entry.end - entry.begin == *bytes, path, ": corrupt header: tensor '", entry.name, "' of shape ",
                  entry.shape, " and dtype ", entry.dtype, " needs ", *bytes, " bytes, it has ",
                  entry.end - entry.begin);
    RUSH_CHECK_IO(entry.begin == covered, path, ": corrupt header: tensor '", entry.name, "' begins at byte ",
                  entry.begin, ", the one before it ends at ", covered);
    covered = entry.end;
  }
  RUSH_CHECK_IO(covered == data_size, path, ": corrupt: ", data_size - covered, " bytes after the last tensor");
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata,
                      Checksum checksum) {
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : tensors) {
    RUSH_CHECK_VALUE(detail::can_be_saved(tensor), "save_safetensors: tensor '", name, detail::kCannotBeSaved);
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), 0, 0});
  }
  // The last of the narrowest: it ends the file.
  if (checksum == Checksum::Crc32) entries.push_back({std::string(kChecksumName), kUInt8, {kChecksumSize}, 0, 0});
  const std::string start = lay_out_safetensors(entries, metadata);
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return entries[i].begin; });

  AtomicFile file(path);
  Crc32 sum;
  const auto write = [&](const void* bytes, size_t size) {
    file.write(bytes, size);
    if (checksum == Checksum::Crc32) sum.update(bytes, size);
  };
  write(start.data(), start.size());
  for (const size_t i : order) {
    const Tensor values = tensors[i].second.detach().cpu().contiguous();
    write(values.data_ptr(), static_cast<size_t>(values.nbytes()));
  }
  if (checksum == Checksum::Crc32) {
    std::string digest;
    put_little_endian(digest, sum.value(), kChecksumSize);
    file.write(digest);
  }
  file.commit();
}

NamedTensors load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const Entry& entry : file.entries()) tensors.emplace_back(entry.name, file.read(entry));
  return tensors;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const std::string header = read_header(file_);
  HeaderHandler handler(path, &entries_, &metadata_);
  Json::sax_parse(header, &handler);

  const uint64_t data_begin = kLengthSize + header.size();
  check_ranges(path, entries_, file_.size() - data_begin);
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].begin += data_begin;
    entries_[i].end += data_begin;
    by_name_.emplace(entries_[i].name, i);
  }
}

void SafetensorsFile::verify_checksum() {
  const std::string& path = file_.path();
  const Entry* last = find(kChecksumName);
  RUSH_CHECK_IO(last && last->end == file_.size() && last->end - last->begin == kChecksumSize, path,
                ": corrupt, or no file with a checksum: none ends it");
  Crc32 sum;
  std::vector<uint8_t> part(size_t{1} << 16);
  for (uint64_t at = 0; at < last->begin; at += part.size()) {
    part.resize(static_cast<size_t>(std::min<uint64_t>(part.size(), last->begin - at)));
    file_.read(at, part.data(), part.size());
    sum.update(part.data(), part.size());
  }
  uint8_t digest[kChecksumSize];
  file_.read(last->begin, digest, kChecksumSize);
  RUSH_CHECK_IO(get_little_endian(digest, kChecksumSize) == sum.value(), path,
                ": corrupt: its content does not have its checksum (CRC-32)");
  const auto place = static_cast<size_t>(last - entries_.data());
  by_name_.clear();
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
  for (size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
}

const Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

Tensor SafetensorsFile::read(std::string_view name) const {
  const Entry* entry = find(name);
  RUSH_CHECK_IO(entry, file_.path(), ": has no tensor named '", name, "'");
  return read(*entry);
}

Tensor SafetensorsFile::read(const Entry& entry) const {
  const Tensor tensor = detail::empty_contiguous(entry.shape, entry.dtype, kCPU);
  read(entry, 0, tensor.data_ptr(), static_cast<size_t>(entry.end - entry.begin));
  return tensor;
}

void SafetensorsFile::read(const Entry& entry, uint64_t offset, void* out, size_t size) const {
  file_.read(entry.begin + offset, out, size);
  RUSH_CHECK_IO(values_valid(out, size, entry.dtype), file_.path(), ": corrupt: tensor '", entry.name,
                "' holds a bool that is neither 0 nor 1");
}

}  // namespace rush::io
