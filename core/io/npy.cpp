#include "core/io/npy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include "core/error/error.h"
#include "core/io/array_bytes.h"
#include "core/io/array_source.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_source.h"
#include "core/io/little_endian.h"
#include "core/io/zip_archive.h"
#include "core/memory/has_data.h"

namespace rush::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 10'000;  // numpy.load's own limit
constexpr size_t kMaxDims = 64;        // as PyTorch
constexpr size_t kAlignment = 64;      // of the values
constexpr size_t kGrowth = 21;         // digits for which NumPy leaves room, so that the outer size may grow in place
constexpr std::string_view kSuffix = ".npy";
constexpr uint64_t kUsualRatio = 64;                      // to which the arrays of an archive may unpack unasked
constexpr uint64_t kUsualUnpacked = uint64_t{256} << 20;  // likewise, whatever the ratio

struct Header {
  std::optional<ScalarType> dtype;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// ---- reading

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, a Python literal of this one form.
class HeaderParser {
 public:
  HeaderParser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        once(header_.dtype.has_value());
        header_.dtype = dtype();
      } else if (key == "fortran_order") {
        once(header_.fortran_order.has_value());
        header_.fortran_order = boolean();
      } else if (key == "shape") {
        once(header_.shape.has_value());
        header_.shape = tuple();
      } else {
        corrupt("it has an unknown key");
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) corrupt("text follows the dictionary");
    if (!header_.dtype || !header_.fortran_order || !header_.shape) corrupt("it lacks descr, fortran_order or shape");
    return header_;
  }

 private:
  [[noreturn]] void corrupt(const char* what) const { RUSH_THROW(IOError, name_, ": corrupt npy header: ", what); }
  void once(bool seen) const {
    if (seen) corrupt("a key comes twice");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) corrupt("it is not a dictionary of descr, fortran_order and shape");
  }

  std::string_view string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) corrupt("a string does not end");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    corrupt("fortran_order is neither True nor False");
  }

  ScalarType dtype() {
    skip_space();
    RUSH_CHECK_NOT_IMPLEMENTED(at_ >= text_.size() || text_[at_] != '[', name_,
                               ": structured dtypes are not supported");
    const std::string_view text = string();
    for (int i = 0; i < kNumScalarTypes; ++i) {
      const std::string_view name = kDtypeTraits[i].npy;
      // Single bytes have no order: NumPy reads any.
      if (name.empty() || text.size() < 2 || text.substr(1) != name.substr(1)) continue;
      if (name[0] == '|' || text[0] == '<' || text[0] == '=') return static_cast<ScalarType>(i);
    }
    RUSH_THROW(NotImplementedError, name_, ": unsupported dtype '", std::string(text.substr(0, 40)), "'");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    bool comma = true;
    if (!accept('(')) corrupt("shape is no tuple");
    while (!accept(')')) {
      if (!comma) corrupt("shape is no tuple");
      sizes.push_back(size());
      if (sizes.size() > kMaxDims) corrupt("it has more than 64 dimensions");
      comma = accept(',');
    }
    if (sizes.size() == 1 && !comma) corrupt("shape is no tuple");
    return sizes;
  }

  int64_t size() {
    skip_space();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        corrupt("a size is not below 2^63");
      }
    }
    if (at_ == begin) corrupt("a size is not a whole number");
    return value;
  }

  const std::string& name_;
  std::string_view text_;
  size_t at_ = 0;
  Header header_;
};

// `name` begins messages: the file, and the entry within it.
Header read_header(const std::string& name, ByteSource& source) {
  const auto need = [&](uint64_t size) {
    RUSH_CHECK_IO(size <= source.left(), name, ": truncated: its header ends early");
  };
  uint8_t start[12];
  need(kMagic.size() + 2);
  source.read(start, kMagic.size() + 2);
  RUSH_CHECK_IO(std::equal(kMagic.begin(), kMagic.end(), reinterpret_cast<const char*>(start)), name,
                ": not an npy file: it does not begin with \\x93NUMPY");
  const int major = start[6], minor = start[7];
  RUSH_CHECK_NOT_IMPLEMENTED(major >= 1 && major <= 3 && minor == 0, name, ": unsupported npy format version ", major,
                             ".", minor);
  const size_t length_size = major == 1 ? 2 : 4;
  need(length_size);
  source.read(start, length_size);
  const uint64_t length = get_little_endian(start, length_size);
  RUSH_CHECK_IO(length <= kMaxHeader, name, ": corrupt npy header: it announces ", length, " bytes, at most ",
                kMaxHeader, " are accepted");
  need(length);
  std::string text(static_cast<size_t>(length), '\0');
  source.read(text.data(), text.size());
  return HeaderParser(name, text).parse();
}

std::vector<int64_t> column_major_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides;
  int64_t stride = 1;
  for (const int64_t size : sizes) {
    strides.push_back(stride);
    stride *= std::max<int64_t>(size, 1);
  }
  return strides;
}

Tensor read_array(const std::string& name, ByteSource& source) {
  const Header header = read_header(name, source);
  const IntArrayRef shape = *header.shape;
  const std::optional<uint64_t> bytes = array_bytes(shape, *header.dtype);
  RUSH_CHECK_IO(bytes, name, ": corrupt npy header: an array of shape ", shape, " has more than 2^63 bytes");
  RUSH_CHECK_IO(*bytes <= source.left(), name, ": truncated: an array of shape ", shape, " and dtype ", *header.dtype,
                " needs ", *bytes, " bytes, there are ", source.left());
  RUSH_CHECK_IO(*bytes == source.left(), name, ": corrupt: ", source.left() - *bytes, " bytes follow the values");

  const Tensor tensor = *header.fortran_order
                            ? detail::empty_strided(shape, column_major_strides(shape), *header.dtype, kCPU)
                            : detail::empty_contiguous(shape, *header.dtype, kCPU);
  const auto size = static_cast<size_t>(*bytes);
  source.read(tensor.data_ptr(), size);
  RUSH_CHECK_IO(values_valid(tensor.data_ptr(), size, *header.dtype), name,
                ": corrupt: holds a bool that is neither 0 nor 1");
  return tensor;
}

// ---- writing

std::string make_header(std::string_view dtype, bool fortran_order, IntArrayRef shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += str(sizes.empty() ? "" : ", ", size);
  std::string text = str("{'descr': '", dtype, "', 'fortran_order': ", fortran_order ? "True" : "False", ", 'shape': (",
                         sizes, shape.size() == 1 ? ",)" : ")", ", }");
  if (shape.size() > 0) {
    const std::string outer = str(fortran_order ? shape[shape.size() - 1] : shape[0]);
    text.append(kGrowth - outer.size(), ' ');
  }
  const size_t before = kMagic.size() + 4;  // the version and the length
  text.append(kAlignment - (before + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string header = str(kMagic, "\x01", std::string_view("\0", 1));
  put_little_endian(header, text.size(), 2);
  return header + text;
}

Array make_array(const char* who, const std::string& name, const Tensor& tensor) {
  RUSH_CHECK_VALUE(detail::can_be_saved(tensor), who, ": tensor '", name, detail::kCannotBeSaved);
  const std::string_view dtype = traits_of(tensor.scalar_type()).npy;
  RUSH_CHECK_TYPE(!dtype.empty(), who, ": NumPy has no dtype for ", tensor.scalar_type(), " (tensor '", name, "')");
  // The transpose of a column-major matrix is row-major.
  std::vector<int64_t> reversed;
  for (int64_t dim = tensor.dim(); dim > 0; --dim) reversed.push_back(dim - 1);
  const Tensor values = tensor.detach(), transposed = values.permute(reversed);
  const bool fortran_order = !values.is_contiguous() && transposed.is_contiguous();
  return {make_header(dtype, fortran_order, tensor.sizes()), fortran_order ? transposed : values};
}

}  // namespace

void save_npy(const std::string& path, const Tensor& tensor) {
  const Array array = make_array("save_npy", path, tensor);
  const Tensor memory = array.values.cpu().contiguous();
  AtomicFile file(path);
  file.write(array.header);
  file.write(memory.data_ptr(), static_cast<size_t>(memory.nbytes()));
  file.commit();
}

Tensor load_npy(const std::string& path) {
  FileSource source(path);
  return read_array(path, source);
}

void save_npz(const std::string& path, const NamedTensors& tensors, NpzCompression compression) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    RUSH_CHECK_VALUE(names.insert(name).second, "save_npz: two tensors are named '", name, "'");
  }
  ZipWriter archive(path);
  for (const auto& [name, tensor] : tensors) {
    archive.add(name + std::string(kSuffix), std::make_unique<ArraySource>(make_array("save_npz", name, tensor)),
                compression == NpzCompression::Deflated);
  }
  archive.commit();
}

NamedTensors load_npz(const std::string& path, std::optional<uint64_t> max_bytes) {
  ZipReader archive(path, "an npz file");
  const uint64_t unpacked = archive.unpacked_size(), packed = archive.packed_size();
  const uint64_t most = max_bytes.value_or(std::max(kUsualUnpacked, kUsualRatio * packed));
  RUSH_CHECK_IO(unpacked <= most, path, ": too large: its arrays unpack to ", unpacked, " bytes, from a file of ",
                packed, "; at most ", most, " are accepted: if you trust the file, pass load_npz a larger max_bytes");
  NamedTensors tensors;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const std::string& entry = archive.entries()[i].name;
    RUSH_CHECK_IO(entry.ends_with(kSuffix), path, ": entry '", entry, "' is no .npy file");
    const std::string name = entry.substr(0, entry.size() - kSuffix.size());
    tensors.emplace_back(name, read_array(str(path, ": '", name, "'"), *archive.open(i)));
  }
  return tensors;
}

}  // namespace rush::io
