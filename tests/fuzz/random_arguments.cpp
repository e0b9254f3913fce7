#include "tests/fuzz/random_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/str.h"
#include "core/tensor_impl.h"

namespace fuzz {

using namespace rush;

namespace {

constexpr ScalarType kDtypes[] = {kUInt8,   kInt8,    kInt16,     kInt32,      kInt64, kFloat16,
                                  kFloat32, kFloat64, kComplex64, kComplex128, kBool,  kBFloat16};

constexpr int64_t kMostElements = int64_t{1} << 20;  // along a dimension of a tensor in memory

bool any_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return name.find(part) != name.npos; });
}

template <class T, class Make>
std::vector<T> list_of(size_t count, const Make& make) {
  std::vector<T> list;
  for (size_t i = 0; i < count; ++i) list.push_back(make());
  return list;
}

// N of "int[N]", 0 where it is not given.
size_t fixed_length(const std::string& type) {
  const size_t open = type.find('[');
  return open == type.npos || type[open + 1] == ']' ? 0 : static_cast<size_t>(type[open + 1] - '0');
}

}  // namespace

RandomArguments::RandomArguments(uint64_t seed) : random_(seed) {
  meta_ = random_.percent(8);
  gradients_ = random_.percent(25);
  common_ = sizes();
  if (meta_ && !common_.empty() && random_.percent(50)) common_[random_.below(common_.size())] = huge_size();
  dtype_ = random_.percent(60) ? (random_.percent(60) ? kFloat32 : kFloat64) : random_.pick(kDtypes);
}

// Of a dimension that only an expanded tensor can have; beside others, so that the elements can still be counted.
int64_t RandomArguments::huge_size() {
  constexpr int64_t alone[] = {INT64_MAX, INT64_MAX - 1, int64_t{1} << 62, (int64_t{1} << 62) + 1};
  constexpr int64_t beside[] = {int64_t{1} << 31, (int64_t{1} << 31) - 1, int64_t{1} << 40, int64_t{1} << 48};
  return common_.size() == 1 && random_.percent(50) ? random_.pick(alone) : random_.pick(beside);
}

std::vector<int64_t> RandomArguments::sizes() {
  constexpr int64_t usual[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 8};
  std::vector<int64_t> sizes(random_.below(6));
  for (int64_t& size : sizes) size = random_.percent(95) ? usual[1 + random_.below(9)] : usual[0];
  return sizes;
}

Stack RandomArguments::make(const OpBase& op) {
  const Schema schema = Schema::parse(op.schema());
  Stack stack;
  for (const Argument& argument : schema.arguments) {
    const bool left_out = argument.default_value && random_.percent(30);
    stack.push_back(left_out ? Value() : value(argument));
    if (left_out || (argument.optional() && random_.percent(40)))
      stack.back() = argument.default_value.value_or(Value());
  }
  if (random_.percent(4) && !stack.empty()) stack[random_.below(stack.size())] = odd_value();
  if (random_.percent(1) && !stack.empty()) stack.pop_back();
  return stack;
}

Value RandomArguments::odd_value() {
  switch (random_.below(8)) {
    case 0: return Value();
    case 1: return Tensor();
    case 2: return random_.extreme();
    case 3: return "text";
    case 4: return std::vector<int64_t>{};
    case 5: return std::vector<Tensor>{};
    case 6: return true;
    default: return tensor("odd");
  }
}

Value RandomArguments::value(const Argument& argument) {
  std::string type = argument.type;
  if (argument.optional()) type.pop_back();
  const std::string& name = argument.name;
  const auto any_length = [&] { return random_.percent(90) ? random_.below(4) : random_.below(8); };
  const auto length = [&] {
    const size_t fixed = fixed_length(type);
    return fixed > 0 && random_.percent(90) ? fixed : any_length();
  };
  if (type == "Tensor") return random_.percent(2) ? Tensor() : tensor(name);
  if (type == "Tensor[]") return list_of<Tensor>(any_length(), [&] { return tensor(name); });
  if (type == "Tensor?[]") {
    return list_of<std::optional<Tensor>>(
        any_length(), [&] { return random_.percent(30) ? std::nullopt : std::optional<Tensor>(tensor("indices")); });
  }
  if (type.starts_with("int[")) {
    // Most lists of sizes have to do with those of the tensors.
    if (random_.percent(25)) return common_;
    const int64_t first = integer(name);
    const bool equal = random_.percent(40);
    return list_of<int64_t>(length(), [&] { return equal ? first : integer(name); });
  }
  if (type.starts_with("float[")) return list_of<double>(length(), [&] { return real(); });
  if (type.starts_with("bool[")) return list_of<bool>(length(), [&] { return random_.percent(50); });
  if (type.starts_with("int")) return integer(name);
  if (type == "float") return real();
  if (type == "bool") return random_.percent(50);
  if (type == "Scalar") return scalar();
  if (type == "str") return text(name);
  if (type == "ScalarType") return random_.pick(kDtypes);
  if (type == "Layout") return random_.percent(80) ? kStrided : static_cast<Layout>(1 + random_.below(5));
  if (type == "Device") return Device(random_.percent(80) ? kCPU : random_.percent(50) ? kMeta : kCUDA);
  if (type == "MemoryFormat") return static_cast<MemoryFormat>(random_.below(4));
  if (type == "Generator") return Value(default_generator());
  return odd_value();
}

int64_t RandomArguments::integer(const std::string& name) {
  if (random_.percent(6)) return random_.extreme();
  const auto dims = static_cast<int64_t>(common_.size());
  if (any_of(name, {"dim", "axis", "start", "source", "destination"})) return random_.between(-dims - 1, dims);
  if (any_of(name, {"reduction", "mode"})) return random_.between(-1, 3);
  return random_.percent(80) ? random_.between(0, 4) : random_.between(-6, 12);
}

double RandomArguments::real() {
  constexpr double odd[] = {NAN,    INFINITY, -INFINITY, 0.0, -0.0, -1.0, 1e300, -1e300,
                            1e-300, 1e19,     -1e19,     0.5, 1e10, 2.0,  1.0};
  return random_.percent(40) ? random_.pick(odd) : static_cast<double>(random_.between(-400, 400)) / 100;
}

Value RandomArguments::scalar() {
  switch (random_.below(8)) {
    case 0: return random_.percent(50);
    case 1: return complex<double>(real(), real());
    case 2:
    case 3:
    case 4: return integer("scalar");
    default: return real();
  }
}

std::string RandomArguments::text(const std::string& name) {
  constexpr const char* texts[] = {"none",     "tanh",     "floor",     "trunc",    "linear",  "lower",   "higher",
                                   "nearest",  "mean",     "sum",       "prod",     "amax",    "amin",    "reduced",
                                   "complete", "r",        "L",         "U",        "fro",     "nuc",     "ij",
                                   "xy",       "valid",    "same",      "left",     "right",   "reflect", "",
                                   "zzz",      "constant", "replicate", "circular", "midpoint"};
  constexpr const char* equations[] = {"ij,jk->ik", "i->", "...i,...i->...", "ii->i", "ab,cd", "i,j->ij", "->",
                                       "ij->ji",    ",",   "i..j->i",        "a",     "ij,ij", "1",       "ab...->b"};
  return any_of(name, {"equation"}) ? random_.pick(equations) : random_.pick(texts);
}

Tensor RandomArguments::tensor(const std::string& name) {
  std::vector<int64_t> sizes = common_;
  const size_t choice = random_.below(20);
  if (choice < 2) {  // broadcast
    for (int64_t& size : sizes) size = random_.percent(40) ? 1 : size;
    if (!sizes.empty() && random_.percent(50)) sizes.erase(sizes.begin());
  } else if (choice < 4 && sizes.size() >= 2) {
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  } else if (choice < 6 && sizes.size() >= 2) {  // one number of the shape: a weight, a list of indices
    sizes = {random_.pick(sizes)};
  } else if (choice < 7) {
    sizes = {};
  } else if (choice < 9 && !sizes.empty()) {
    sizes[random_.below(sizes.size())] = random_.between(0, 5);
  } else if (choice < 11) {
    sizes = this->sizes();
  }
  ScalarType dtype = random_.percent(85) ? dtype_ : random_.pick(kDtypes);
  if (any_of(name, {"ind", "target", "offsets", "length", "repeats", "boundaries"}) && random_.percent(75)) {
    dtype = random_.percent(80) ? kInt64 : kInt32;
  }
  if (any_of(name, {"mask", "condition", "found_inf"}) && random_.percent(75)) dtype = kBool;
  const Tensor made = in_layout(sizes, dtype);
  if (gradients_ && is_differentiable(dtype) && random_.percent(50)) made.requires_grad_();
  return made;
}

// Contiguous, transposed, with gaps, reversed offset or stretched.
Tensor RandomArguments::in_layout(IntArrayRef sizes, ScalarType dtype) {
  const bool huge = std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > kMostElements; });
  const bool meta = (random_.percent(98) ? meta_ : !meta_) || huge;  // a kernel would visit all of them
  const size_t dims = sizes.size(), choice = random_.below(10);
  std::vector<int64_t> whole(sizes.begin(), sizes.end());
  if (huge) {
    for (int64_t& size : whole) size = size > kMostElements ? 1 : size;
    return rush::detail::empty_contiguous(whole, dtype, kMeta).expand(sizes);
  }
  const size_t dim = random_.below(dims);
  if (dims > 0 && choice == 0) whole[dim] = 2 * whole[dim] + 1;
  if (dims > 0 && choice == 1) whole[dim] = 1;
  if (dims > 1 && choice == 2) std::reverse(whole.begin(), whole.end());
  Tensor made = rush::detail::empty_contiguous(whole, dtype, meta ? kMeta : kCPU);
  if (!meta) fill(made);
  const auto d = static_cast<int64_t>(dim);
  if (dims > 0 && choice == 0) return made.slice(d, 1, std::nullopt, 2);
  if (dims > 0 && choice == 1) return made.expand(sizes);
  if (dims > 1 && choice == 2) {
    std::vector<int64_t> reversed;
    for (size_t i = dims; i > 0; --i) reversed.push_back(static_cast<int64_t>(i) - 1);
    return made.permute(reversed);
  }
  return made;
}

void RandomArguments::fill(const Tensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(tensor.data_ptr());
  const auto size = static_cast<size_t>(tensor.element_size());
  const int64_t most = random_.percent(80) ? 4 : 9;
  const bool wild = random_.percent(15), positive = random_.percent(40);
  const ScalarType dtype = tensor.scalar_type();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const int64_t whole = wild && random_.percent(30) ? random_.extreme() : random_.between(positive ? 0 : -most, most);
    const double fraction = wild && random_.percent(30) ? real() : static_cast<double>(whole) / 2;
    unsigned char* element = bytes + static_cast<size_t>(i) * size;
    const auto put = [&](auto value) { std::memcpy(element, &value, sizeof value); };
    if (dtype == kBool)
      put(whole > 0);
    else if (dtype == kFloat16)
      put(Half(static_cast<float>(fraction)));
    else if (dtype == kBFloat16)
      put(BFloat16(static_cast<float>(fraction)));
    else if (dtype == kFloat32)
      put(static_cast<float>(fraction));
    else if (dtype == kFloat64)
      put(fraction);
    else if (dtype == kComplex64)
      put(complex<float>(static_cast<float>(fraction), static_cast<float>(real())));
    else if (dtype == kComplex128)
      put(complex<double>(fraction, real()));
    else
      std::memcpy(element, &whole, size);
  }
}

// ---- for people
// ------------------------------------------------------------------------------------------------------

namespace {

template <class List>
std::string join(const List& list) {
  std::string text = "[";
  for (const auto& each : list) text += (text.size() > 1 ? ", " : "") + str(each);
  return text + "]";
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string values;
  const bool small = !tensor.is_meta() && tensor.numel() <= 12;
  if (small) {
    const Tensor flat = tensor.detach().contiguous().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) values += (i ? ", " : "") + str(flat.select(0, i).item());
    values = " values {" + values + "}";
  }
  return str(tensor.scalar_type(), " ", tensor.sizes(), " strides ", tensor.strides(), " on ", tensor.device(),
             tensor.requires_grad() ? " with gradient" : "", values);
}

std::string describe(const std::optional<Tensor>& tensor) { return tensor ? describe(*tensor) : "None"; }

template <class List>
std::string describe_list(const List& list) {
  std::string text = "[";
  for (const auto& each : list) text += (text.size() > 1 ? "; " : "") + describe(each);
  return text + "]";
}

std::string describe(const Value& value) {
  if (value.is<Tensor>()) return describe(value.as<Tensor>());
  if (value.is<std::vector<Tensor>>()) return describe_list(value.as<std::vector<Tensor>>());
  if (value.is<std::vector<std::optional<Tensor>>>()) {
    return describe_list(value.as<std::vector<std::optional<Tensor>>>());
  }
  if (value.is<std::vector<int64_t>>()) return join(value.as<std::vector<int64_t>>());
  if (value.is<std::vector<double>>()) return join(value.as<std::vector<double>>());
  if (value.is<int64_t>()) return str(value.as<int64_t>());
  if (value.is<double>()) return str(value.as<double>());
  if (value.is<bool>()) return value.as<bool>() ? "true" : "false";
  if (value.is<complex<double>>()) return str(Scalar(value.as<complex<double>>()));
  if (value.is<std::string>()) return "\"" + value.as<std::string>() + "\"";
  if (value.is<ScalarType>()) return str(value.as<ScalarType>());
  if (value.is<Device>()) return value.as<Device>().str();
  return value.kind();
}

}  // namespace

std::string describe(const Stack& arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) text += str("  ", i, ": ", describe(arguments[i]), "\n");
  return text;
}

std::vector<size_t> written_arguments(const OpBase& op) {
  const std::string_view schema(op.schema());
  const std::string_view list = schema.substr(0, schema.rfind(" -> "));
  const std::vector<Argument> arguments = Schema::parse(schema).arguments;
  std::vector<size_t> written;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      const std::string text = str("Tensor(", std::string(1, letter), "!) ", arguments[i].name);
      const size_t at = list.find(text);
      const bool whole = at != list.npos && list.find_first_of(",)=", at + text.size()) == at + text.size();
      if (whole) written.push_back(i);
    }
  }
  return written;
}

}  // namespace fuzz
