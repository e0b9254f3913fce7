// Tensors as text, character for character as PyTorch's Python prints them: str(tensor) with the default options.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/dispatch/key.h"
#include "core/memory/has_data.h"
#include "core/ops/basic.h"
#include "core/print/stream_output.h"
#include "core/print/tensor_printer.h"
#include "core/tensor.h"

namespace rush {

namespace {

// torch.set_printoptions' defaults.
constexpr int kPrecision = 4;
constexpr int64_t kThreshold = 1000;  // more elements are summarised
constexpr int64_t kEdgeItems = 3;     // shown at each end of a summarised dimension
constexpr int64_t kLineWidth = 80;

std::string printed(const char* format, double value) {
  if (std::isnan(value)) return "nan";  // printf shows the sign that nan may have
  char text[512];                       // %.0f of the largest double has 309 digits
  std::snprintf(text, sizeof(text), format, value);
  return text;
}
std::string fixed(double value) { return printed("%.4f", value); }
std::string scientific(double value) { return printed("%.4e", value); }
std::string whole(double value) { return printed("%.0f", value); }
static_assert(kPrecision == 4, "the formats above say so");

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

// How the elements of one tensor, or the real or the imaginary parts of a complex one, are written: all in one form and
// one width.
class Format {
 public:
  virtual ~Format() = default;
  virtual std::string operator()(int64_t i) const = 0;
  size_t width = 1;
};

class IntegerFormat final : public Format {
 public:
  IntegerFormat(std::vector<int64_t> values, ScalarType dtype) : values_(std::move(values)), dtype_(dtype) {
    for (int64_t value : values_) width = std::max(width, text(value).size());
  }
  std::string operator()(int64_t i) const override { return padded(text(values_[i]), width); }

 private:
  std::string text(int64_t value) const {
    if (dtype_ == kBool) return value ? "True" : "False";
    return dtype_ == kUInt64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  }

  std::vector<int64_t> values_;
  ScalarType dtype_;
};

// Whole numbers are written "3.", others with four decimals; in scientific notation when they differ by more than a
// factor of 1000, or are very large or small. Zeros, infinities and nan have no say in this.
class FloatFormat final : public Format {
 public:
  explicit FloatFormat(std::vector<double> values) : values_(std::move(values)) {
    double smallest = INFINITY, largest = 0;
    for (double value : values_) {
      if (!counts(value)) continue;
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
      whole_ = whole_ && value == std::ceil(value);
    }
    if (largest == 0) return;
    scientific_ = largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4;
    for (double value : values_) {
      if (counts(value)) width = std::max(width, text(value).size());
    }
  }
  std::string operator()(int64_t i) const override { return padded(text(values_[i]), width); }

 private:
  static bool counts(double value) { return std::isfinite(value) && value != 0; }
  std::string text(double value) const {
    if (scientific_) return scientific(value);
    if (!whole_) return fixed(value);
    return std::isfinite(value) ? whole(value) + "." : whole(value);
  }

  std::vector<double> values_;
  bool whole_ = true, scientific_ = false;
};

class ComplexFormat final : public Format {
 public:
  ComplexFormat(std::vector<double> real, std::vector<double> imag) : real_(std::move(real)), imag_(std::move(imag)) {
    // PyTorch counts the j, and leaves out the sign between the parts.
    width = real_.width + imag_.width + 1;
  }
  std::string operator()(int64_t i) const override {
    std::string imag = imag_(i) + "j";
    imag.erase(0, imag.find_first_not_of(' '));
    return real_(i) + (imag[0] == '-' ? "" : "+") + imag;
  }

 private:
  FloatFormat real_, imag_;
};

template <class T>
std::vector<T> values_of(const Tensor& tensor, ScalarType dtype) {
  const Tensor values = tensor.to(dtype).contiguous();
  const T* data = values.const_data_ptr<T>();
  return std::vector<T>(data, data + values.numel());
}

std::unique_ptr<Format> format_of(const Tensor& tensor) {
  if (tensor.is_complex()) {
    const Tensor parts = view_as_real(tensor.to(kComplex128).contiguous());
    return std::make_unique<ComplexFormat>(values_of<double>(parts.select(-1, 0), kFloat64),
                                           values_of<double>(parts.select(-1, 1), kFloat64));
  }
  if (tensor.is_floating_point()) return std::make_unique<FloatFormat>(values_of<double>(tensor, kFloat64));
  return std::make_unique<IntegerFormat>(values_of<int64_t>(tensor, kInt64), tensor.scalar_type());
}

bool is_cut(int64_t size) { return size > 2 * kEdgeItems; }

// The first and last items of every long dimension.
Tensor edges_of(Tensor tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    const int64_t size = tensor.size(d);
    if (is_cut(size))
      tensor = cat({tensor.narrow(d, 0, kEdgeItems), tensor.narrow(d, size - kEdgeItems, kEdgeItems)}, d);
  }
  return tensor;
}

// Writes the brackets of a tensor of `sizes` whose elements, summarised or not, come one after another.
class Layouter {
 public:
  Layouter(const Format& format, IntArrayRef sizes, bool summarised)
      : format_(format), sizes_(sizes), summarised_(summarised) {}

  std::string write(size_t dim, size_t indent) {
    if (sizes_.empty()) return format_(0);
    return dim + 1 == sizes_.size() ? write_row(indent) : write_block(dim, indent);
  }

 private:
  // What stands between the brackets of one dimension, in order; `gap` for what is left out.
  template <class Item>
  std::vector<std::string> items(size_t dim, const char* gap, Item item) const {
    const bool cut = summarised_ && is_cut(sizes_[dim]);
    const int64_t count = cut ? 2 * kEdgeItems : sizes_[dim];
    std::vector<std::string> texts;
    for (int64_t i = 0; i < count; ++i) {
      if (cut && i == kEdgeItems) texts.emplace_back(gap);
      texts.push_back(item());
    }
    return texts;
  }

  std::string write_row(size_t indent) {
    const auto texts = items(sizes_.size() - 1, " ...", [&] { return format_(next_++); });
    const size_t room = kLineWidth > indent ? kLineWidth - indent : 0;
    const size_t per_line = std::max<size_t>(1, room / (format_.width + 2));
    std::string out = "[";
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) out += i % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      out += texts[i];
    }
    return out + "]";
  }

  std::string write_block(size_t dim, size_t indent) {
    const auto texts = items(dim, "...", [&] { return write(dim + 1, indent + 1); });
    const std::string between = "," + std::string(sizes_.size() - dim - 1, '\n') + std::string(indent + 1, ' ');
    std::string out = "[";
    for (size_t i = 0; i < texts.size(); ++i) out += (i > 0 ? between : "") + texts[i];
    return out + "]";
  }

  const Format& format_;
  IntArrayRef sizes_;
  bool summarised_;
  int64_t next_ = 0;
};

std::string contents(const Tensor& tensor, size_t indent) {
  if (!detail::has_data(tensor)) return "...";
  if (tensor.numel() == 0) return "[]";
  const bool summarised = tensor.numel() > kThreshold;
  const auto format = format_of((summarised ? edges_of(tensor) : tensor).cpu());
  return Layouter(*format, tensor.sizes(), summarised).write(0, indent);
}

// A tuple of one needs its comma.
std::string size_suffix(const Tensor& tensor) {
  std::string sizes = str("size=", tensor.sizes());
  if (tensor.dim() == 1) sizes.insert(sizes.size() - 1, ",");
  return sizes;
}

// Whether elements show their dtype without its name.
bool is_evident(ScalarType dtype) {
  const ScalarType standard = get_default_dtype();
  return dtype == standard || dtype == to_complex(standard) || dtype == kInt64 || dtype == kBool;
}

void add_gradient_suffix(std::vector<std::string>& texts, const Tensor& tensor) {
  if (!tensor.requires_grad()) return;
  const std::string function = tensor.grad_fn_name();
  texts.push_back(function.empty() ? "requires_grad=True" : "grad_fn=<" + function + ">");
}

// The parts of a sparse tensor, each as a tensor of its own.
std::string sparse_contents(const Tensor& tensor, size_t indent) {
  std::string out;
  const auto add = [&](const std::string& name, const Tensor& part) {
    if (!out.empty()) out += ",\n" + std::string(indent, ' ');
    const std::string prefix = name + "=tensor(";
    out += prefix + contents(part, indent + prefix.size());
    if (part.numel() == 0) out += ", " + size_suffix(part);
    out += ")";
  };
  const Layout layout = tensor.layout();
  if (layout == kSparse) {
    add("indices", tensor._indices());
  } else if (compresses_rows(layout)) {
    add("crow_indices", tensor.crow_indices());
    add("col_indices", tensor.col_indices());
  } else {
    add("ccol_indices", tensor.ccol_indices());
    add("row_indices", tensor.row_indices());
  }
  add("values", tensor._values());
  return out;
}

std::vector<std::string> sparse_suffixes(const Tensor& tensor) {
  std::vector<std::string> texts;
  if (!tensor.is_cpu()) texts.push_back(str("device='", tensor.device(), "'"));
  texts.push_back(size_suffix(tensor));
  texts.push_back(str("nnz=", tensor._nnz()));
  if (!is_evident(tensor.scalar_type())) texts.push_back(str("dtype=torch.", tensor.scalar_type()));
  texts.push_back(str("layout=torch.", tensor.layout()));
  add_gradient_suffix(texts, tensor);
  return texts;
}

// What is said after the elements: whatever is not the default.
std::vector<std::string> suffixes(const Tensor& tensor) {
  if (tensor.layout() != kStrided) return sparse_suffixes(tensor);
  std::vector<std::string> texts;
  const ScalarType dtype = tensor.scalar_type();
  const bool shown = tensor.numel() > 0 && !tensor.is_meta();
  if (!tensor.is_cpu()) texts.push_back(str("device='", tensor.device(), "'"));
  if (tensor.is_meta() || (tensor.numel() == 0 && tensor.dim() != 1)) texts.push_back(size_suffix(tensor));
  if (shown ? !is_evident(dtype) : dtype != get_default_dtype()) texts.push_back(str("dtype=torch.", dtype));
  add_gradient_suffix(texts, tensor);
  return texts;
}

}  // namespace

void append(std::string& out, const TensorOptions& o) {
  const auto mark = [](bool given) { return given ? "" : " (default)"; };
  out += rush::str("TensorOptions(dtype=", o.dtype(), mark(o.has_dtype()), ", device=", o.device(),
                   mark(o.has_device()), ", layout=", detail::printed(o.layout()), mark(o.has_layout()),
                   ", requires_grad=", o.requires_grad(), mark(o.has_requires_grad()),
                   ", pinned_memory=", o.pinned_memory(), mark(o.has_pinned_memory()), ", memory_format=");
  if (const auto format = o.memory_format_opt()) {
    out += rush::str(detail::printed(*format), ")");
  } else {
    out += "(nullopt))";
  }
}

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  std::string device_name = device_type_name(device().type);
  for (char& c : device_name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  const char* prefix = layout() == kStrided ? "" : is_sparse() ? "Sparse" : "SparseCsr";
  return rush::str(prefix, device_name, detail::enumerator_name(scalar_type()), "Type");
}

void Tensor::print() const {
  std::string text = "[UndefinedTensor]";
  if (defined()) {
    text = "[" + toString() + " [";
    for (size_t d = 0; d < sizes().size(); ++d) text += rush::str(d > 0 ? ", " : "", sizes()[d]);
    text += "]]";
  }
  std::fprintf(stderr, "%s\n", text.c_str());
}

namespace {
TensorPrinter printer = nullptr;
}

void set_tensor_printer(TensorPrinter chosen) { printer = chosen; }

std::string to_string(const Tensor& tensor) { return printer ? printer(tensor) : python_text(tensor); }

std::string python_text(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  std::string out = "tensor(";
  const size_t indent = out.size();
  out += tensor.layout() == kStrided ? contents(tensor, indent) : sparse_contents(tensor, indent);
  // PyTorch counts the last line one character too long.
  size_t line = out.size() - (out.rfind('\n') + 1) + 2;
  if (tensor.is_sparse()) line = kLineWidth;  // these begin a line of their own
  for (const std::string& suffix : suffixes(tensor)) {
    if (line + suffix.size() + 2 > kLineWidth) {
      out += ",\n" + std::string(indent, ' ') + suffix;
      line = indent + suffix.size();
    } else {
      out += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return out + ")";
}

}  // namespace rush
