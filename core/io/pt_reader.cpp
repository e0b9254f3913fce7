// Reads what torch.save wrote. No object of a class is ever made, and no function called.
#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/io/array_bytes.h"
#include "core/io/little_endian.h"
#include "core/io/pickle.h"
#include "core/io/pt.h"
#include "core/io/zip_archive.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/unary.h"

namespace rush::io {

namespace {

// The archive's entries, which have one folder before their names.
class PtArchive {
 public:
  explicit PtArchive(const std::string& path) : path_(path), zip_(path, "a file of torch.save") {
    for (size_t i = 0; i < zip_.entries().size(); ++i) {
      const std::string& name = zip_.entries()[i].name;
      by_name_.emplace(name.substr(name.find('/') + 1), i);
    }
    RUSH_CHECK_NOT_IMPLEMENTED(!by_name_.contains("constants.pkl"), path,
                               ": a TorchScript archive, as torch.jit.save and libtorch's torch::save write, which "
                               "holds code: write module.state_dict() with Python's torch.save instead");
    RUSH_CHECK_IO(by_name_.contains("data.pkl"), path, ": a zip archive, but none of torch.save's: it has no data.pkl");
    RUSH_CHECK_IO(zip_.unpacked_size() <= zip_.packed_size(), path,
                  ": not a valid PyTorch file: its entries are compressed, which torch.save's are not");
    RUSH_CHECK_NOT_IMPLEMENTED(!by_name_.contains("byteorder") || bytes_of("byteorder") == "little", path,
                               ": written by a big-endian machine");
  }

  std::string bytes_of(const std::string& name) {
    const auto source = zip_.open(by_name_.at(name));
    std::string bytes(source->left(), '\0');
    source->read(bytes.data(), bytes.size());
    return bytes;
  }

  Tensor read_storage(const std::string& key, ScalarType dtype, int64_t numel) {
    const auto found = by_name_.find("data/" + key);
    RUSH_CHECK_IO(found != by_name_.end(), path_, ": not a valid PyTorch file: it has no storage '", key, "'");
    const auto source = zip_.open(found->second);
    const std::optional<uint64_t> bytes = numel < 0 ? std::nullopt : array_bytes({numel}, dtype);
    RUSH_CHECK_IO(bytes && *bytes == source->left(), path_, ": not a valid PyTorch file: storage '", key, "' has ",
                  source->left(), " bytes, and should have ", numel, " elements of ", dtype);
    const Tensor storage = empty({numel}, TensorOptions(dtype).device(kCPU));
    source->read(storage.data_ptr(), *bytes);
    RUSH_CHECK_IO(values_valid(storage.data_ptr(), *bytes, dtype), path_, ": storage '", key,
                  "' has a bool that is neither 0 nor 1");
    return storage;
  }

 private:
  const std::string& path_;
  ZipReader zip_;
  std::unordered_map<std::string, size_t> by_name_;
};

// A Python object, as far as one is understood.
struct Object {
  enum Kind { None, Number, Bool, Real, Text, Sequence, Dict, Global, Storage, TensorObject, Mark } kind = None;
  int64_t number = 0;                // of a Number or Bool
  double real = 0;                   // of a Real
  std::string text;                  // of a Text; "module.name" of a Global
  std::vector<const Object*> items;  // of a Sequence; keys and values in turn of a Dict
  Tensor tensor;                     // of a TensorObject; of a Storage all its elements
};

// Carries out a pickle. All objects belong to it, so that a list that holds itself does no harm.
class Unpickler {
 public:
  Unpickler(const std::string& path, std::string_view bytes, PtArchive& archive)
      : path_(path), bytes_(bytes), archive_(archive) {}

  const Object& run() {
    while (true) {
      const uint8_t opcode = byte();
      if (opcode == kStop) break;
      step(opcode);
    }
    return *pop();
  }

 private:
  void step(uint8_t opcode) {
    switch (opcode) {
      case kProtocol: check(byte() <= 5, "its pickle is of an unknown protocol"); break;
      case kFrame: take(8); break;
      case kMark: push(Object::Mark); break;
      case kNone: push(Object::None); break;
      case kNewTrue: push(Object::Bool).number = 1; break;
      case kNewFalse: push(Object::Bool); break;
      case kBinInt: push(Object::Number).number = static_cast<int32_t>(integer(4)); break;
      case kBinInt1: push(Object::Number).number = static_cast<int64_t>(integer(1)); break;
      case kBinInt2: push(Object::Number).number = static_cast<int64_t>(integer(2)); break;
      case kLong1: long_integer(); break;
      case kBinFloat: real(); break;
      case kBinUnicode: text(integer(4)); break;
      case kShortBinUnicode: text(integer(1)); break;
      case kEmptyList:
      case kEmptyTuple: push(Object::Sequence); break;
      case kEmptyDict: push(Object::Dict); break;
      case kTuple: sequence(after_mark()); break;
      case kTuple1: sequence(pop(1)); break;
      case kTuple2: sequence(pop(2)); break;
      case kTuple3: sequence(pop(3)); break;
      case kAppend: extend(Object::Sequence, pop(1)); break;
      case kAppends: extend(Object::Sequence, after_mark()); break;
      case kSetItem: extend(Object::Dict, pop(2)); break;
      case kSetItems: extend(Object::Dict, after_mark()); break;
      case kBinPut: memo_[integer(1)] = top(); break;
      case kLongBinPut: memo_[integer(4)] = top(); break;
      case kMemoize: memo_.emplace(memo_.size(), top()); break;
      case kBinGet: recall(integer(1)); break;
      case kLongBinGet: recall(integer(4)); break;
      case kGlobal: {
        const std::string module = line();
        push(Object::Global).text = module + "." + line();
        break;
      }
      case kStackGlobal: {
        const std::vector<Object*> names = pop(2);
        check(names[0]->kind == Object::Text && names[1]->kind == Object::Text, "a class without a name");
        push(Object::Global).text = names[0]->text + "." + names[1]->text;
        break;
      }
      case kBinPersistentId: storage(); break;
      case kReduce:
      case kNewObject: call(); break;
      case kBuild: {  // the attributes of an OrderedDict, which nothing asks for
        pop();
        if (top()->kind != Object::Dict) refuse("with attributes");
        break;
      }
      default: fail("its pickle has the instruction ", static_cast<int>(opcode), ", which torch.save does not write");
    }
  }

  // ---- bytes

  std::string_view take(uint64_t count) {
    check(count <= bytes_.size() - at_, "its pickle is truncated");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t integer(size_t count) {
    return get_little_endian(reinterpret_cast<const uint8_t*>(take(count).data()), count);
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    check(end != std::string_view::npos, "its pickle is truncated");
    const std::string found(take(end - at_));
    take(1);
    return found;
  }

  // ---- the stack

  Object& make(Object::Kind kind) {
    objects_.emplace_back().kind = kind;
    return objects_.back();
  }
  Object& push(Object::Kind kind) {
    stack_.push_back(&make(kind));
    return *stack_.back();
  }
  Object* top() {
    check(!stack_.empty(), "its pickle takes from an empty stack");
    return stack_.back();
  }
  Object* pop() {
    Object* object = top();
    stack_.pop_back();
    return object;
  }
  std::vector<Object*> pop(size_t count) {
    check(count <= stack_.size(), "its pickle takes from an empty stack");
    std::vector<Object*> popped(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return popped;
  }
  std::vector<Object*> after_mark() {
    const auto is_mark = [](const Object* object) { return object->kind == Object::Mark; };
    const auto mark = std::find_if(stack_.rbegin(), stack_.rend(), is_mark);
    check(mark != stack_.rend(), "its pickle lacks a mark");
    std::vector<Object*> popped = pop(static_cast<size_t>(mark - stack_.rbegin()));
    pop();
    return popped;
  }

  // ---- objects

  void text(uint64_t size) { push(Object::Text).text = take(size); }
  void long_integer() {
    const size_t size = byte();
    if (size > 8) {  // more than 64 bits, as a seed may have
      take(size);
      push(Object::None);
      return;
    }
    const uint64_t bits = integer(size);
    const size_t unused = 64 - 8 * size;
    push(Object::Number).number = size == 0 ? 0 : static_cast<int64_t>(bits << unused) >> unused;
  }
  void real() {  // big-endian
    uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
    push(Object::Real).real = std::bit_cast<double>(bits);
  }
  void sequence(const std::vector<Object*>& items) { push(Object::Sequence).items.assign(items.begin(), items.end()); }
  void extend(Object::Kind kind, const std::vector<Object*>& items) {
    Object* target = top();
    if (target->kind != kind) refuse("with items");
    check(kind != Object::Dict || items.size() % 2 == 0, "a dict has a key without a value");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    check(found != memo_.end(), "its pickle names an object that is not there");
    stack_.push_back(found->second);
  }

  // ('storage', class, key, device, number of elements)
  void storage() {
    const Object& id = *pop();
    check(id.kind == Object::Sequence && id.items.size() == 5 && id.items[1]->kind == Object::Global &&
              id.items[2]->kind == Object::Text && id.items[4]->kind == Object::Number,
          "a storage is not described as torch.save does");
    const std::string &name = id.items[1]->text, &key = id.items[2]->text;
    const std::optional<ScalarType> dtype = storage_dtype(name);
    RUSH_CHECK_NOT_IMPLEMENTED(dtype, path_, ": it holds a ", name, ", which Rushlight cannot read");
    Object*& read = storages_[key];
    if (!read) {
      read = &make(Object::Storage);
      read->tensor = archive_.read_storage(key, *dtype, id.items[4]->number);
    }
    check(read->tensor.scalar_type() == *dtype, "storage '", key, "' has two dtypes");
    stack_.push_back(read);
  }

  void call() {
    const std::vector<Object*> operands = pop(2);
    const Object &callable = *operands[0], &arguments = *operands[1];
    check(callable.kind == Object::Global && arguments.kind == Object::Sequence, "it calls what is no function");
    const std::string& name = callable.text;
    const std::vector<const Object*>& items = arguments.items;
    if (name == "torch._utils._rebuild_tensor_v2") {
      check(!items.empty() && items[0]->kind == Object::Storage, "a tensor without a storage");
      push(Object::TensorObject).tensor = tensor(items, items[0]->tensor.scalar_type(), 6);
    } else if (name == "torch._utils._rebuild_tensor_v3") {
      check(items.size() >= 7 && items[6]->kind == Object::Global, "a tensor without a dtype");
      push(Object::TensorObject).tensor = tensor(items, dtype_named(items[6]->text), 7);
    } else if (name.starts_with("torch._utils._rebuild_parameter")) {
      check(!items.empty() && items[0]->kind == Object::TensorObject, "a parameter without a tensor");
      push(Object::TensorObject).tensor = items[0]->tensor;
    } else if (name == "collections.OrderedDict") {
      Object& dict = push(Object::Dict);
      if (items.empty()) return;
      for (const Object* pair : items[0]->items) {
        check(pair->kind == Object::Sequence && pair->items.size() == 2, "an OrderedDict of what are no pairs");
        dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
      }
    } else if (name == "torch.Size" || name == "torch.device") {
      sequence({});
    } else {
      refuse("of class ", name);
    }
  }

  DimVector numbers(const Object& sequence) {
    check(sequence.kind == Object::Sequence, "the sizes of a tensor are no tuple");
    DimVector all;
    for (const Object* item : sequence.items) {
      check(item->kind == Object::Number && item->number >= 0, "the sizes of a tensor are no numbers from 0 on");
      all.push_back(item->number);
    }
    return all;
  }

  ScalarType dtype_named(const std::string& name) {
    for (int i = 0; i < kNumScalarTypes; ++i) {
      const auto dtype = static_cast<ScalarType>(i);
      if (name == str("torch.", dtype)) return dtype;
    }
    RUSH_THROW(NotImplementedError, path_, ": it holds a tensor of ", name, ", a dtype that Rushlight lacks");
  }

  // Whether a tensor's metadata, {"conj": True, "neg": True} or less, has that mark.
  bool is_marked(const std::vector<const Object*>& items, size_t metadata, std::string_view mark) {
    if (items.size() <= metadata || items[metadata]->kind != Object::Dict) return false;
    const std::vector<const Object*>& entries = items[metadata]->items;
    bool marked = false;
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      const std::string& key = entries[i]->text;
      if (entries[i + 1]->number != 0 && key != "conj" && key != "neg") refuse("with the mark ", key);
      marked = key == mark ? entries[i + 1]->number != 0 : marked;
    }
    return marked;
  }

  // The elements of a storage, those of a conjugated or negated view computed once for all that are.
  Tensor elements(const Object& storage, ScalarType dtype, int64_t count, bool conjugated, bool negated) {
    if (!conjugated && !negated) return storage.tensor;
    check(dtype == kFloat32 || dtype == kFloat64 || is_complex(dtype), "a conjugated or negated tensor of ", dtype);
    Tensor& computed = computed_[{&storage, dtype, conjugated, negated}];
    if (computed.defined()) return computed;
    computed = detail::make_view_as(storage.tensor, dtype, {count}, {1}, 0);
    if (conjugated) computed = conj_physical(computed);
    if (negated) computed = neg(computed);
    return computed;
  }

  // (storage, offset, sizes, strides, ...), of the storage's dtype or one that its bytes are of. `metadata` says where
  // the marks are that only such tensors have as are lazily conjugated or negated views.
  Tensor tensor(const std::vector<const Object*>& items, ScalarType dtype, size_t metadata) {
    check(items.size() >= 4 && items[0]->kind == Object::Storage && items[1]->kind == Object::Number,
          "a tensor is not described as torch.save does");
    const Tensor& storage = items[0]->tensor;
    check(dtype == storage.scalar_type() || storage.scalar_type() == kUInt8,
          "a tensor has another dtype than its storage");
    check(dtype == storage.scalar_type() || dtype != kBool, "a tensor of bool lies in bytes of any value");
    const int64_t offset = items[1]->number, all = storage.numel() * storage.element_size() / element_size(dtype);
    const DimVector sizes = numbers(*items[2]), strides = numbers(*items[3]);
    check(sizes.size() == strides.size() && sizes.size() <= 64, "a tensor has ", sizes.size(), " sizes and ",
          strides.size(), " strides");
    check(array_bytes(sizes, dtype).has_value(), "a tensor's shape is too large");
    // The last element lies in the storage; no sum here exceeds the storage's size times two.
    int64_t last = offset;
    const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    check(offset >= 0 && offset <= all, "a tensor begins outside of its storage");
    for (size_t d = 0; d < sizes.size() && !empty; ++d) {
      if (sizes[d] == 1 || strides[d] == 0) continue;
      check(strides[d] <= all / (sizes[d] - 1), "a tensor ends outside of its storage");
      last += strides[d] * (sizes[d] - 1);
      check(last < all, "a tensor ends outside of its storage");
    }
    check(empty || last < all, "a tensor ends outside of its storage");
    const bool conjugated = is_marked(items, metadata, "conj"), negated = is_marked(items, metadata, "neg");
    return detail::make_view_as(elements(*items[0], dtype, all, conjugated, negated), dtype, sizes, strides, offset);
  }

  template <class... Args>
  void check(bool holds, const Args&... message) const {
    if (!holds) fail(message...);
  }
  template <class... Args>
  [[noreturn]] void fail(const Args&... message) const {
    RUSH_THROW(IOError, path_, ": not a valid PyTorch file: ", message...);
  }
  template <class... Args>
  [[noreturn]] void refuse(const Args&... message) const {
    RUSH_THROW(
        NotImplementedError, path_, ": it holds an object ", message...,
        ", and only tensors, numbers and texts in dicts, lists and tuples can be read: in Python, save these alone, "
        "as in model.state_dict()");
  }

  const std::string& path_;
  std::string_view bytes_;
  size_t at_ = 0;
  PtArchive& archive_;
  std::deque<Object> objects_;
  std::vector<Object*> stack_;
  std::unordered_map<uint64_t, Object*> memo_;
  std::unordered_map<std::string, Object*> storages_;
  std::map<std::tuple<const Object*, ScalarType, bool, bool>, Tensor> computed_;
};

// Goes through dicts, lists and tuples. A small pickle can stand for endlessly many names: both bounds are far beyond
// what is saved.
class Collector {
 public:
  explicit Collector(const std::string& path) : path_(path) {}
  NamedValues values;

  void collect(const Object& object, const std::string& name, int depth = 0) {
    visit(depth);
    const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
    if (object.kind == Object::TensorObject) {
      values.emplace_back(name, object.tensor);
    } else if (object.kind == Object::Number) {
      values.emplace_back(name, object.number);
    } else if (object.kind == Object::Bool) {
      values.emplace_back(name, object.number != 0);
    } else if (object.kind == Object::Real) {
      values.emplace_back(name, object.real);
    } else if (object.kind == Object::Text) {
      values.emplace_back(name, object.text);
    } else if (object.kind == Object::Sequence) {
      for (size_t i = 0; i < object.items.size(); ++i) collect(*object.items[i], inner(str(i)), depth + 1);
    } else if (object.kind == Object::Dict) {
      for (size_t i = 0; i + 1 < object.items.size(); i += 2) {
        collect(*object.items[i + 1], inner(text_of(*object.items[i], depth + 1)), depth + 1);
      }
    }
  }

 private:
  void visit(int depth) {
    RUSH_CHECK_IO(depth < 100 && ++visited_ < (1 << 22), path_, ": not a valid PyTorch file: nested without end");
  }
  // A key of a dict as Python prints it, texts without quotes.
  std::string text_of(const Object& key, int depth) {
    visit(depth);
    if (key.kind == Object::Text) return key.text;
    if (key.kind == Object::Real) return str(key.real);
    if (key.kind == Object::Bool) return key.number != 0 ? "True" : "False";
    if (key.kind == Object::Number) return str(key.number);
    if (key.kind != Object::Sequence) return "None";
    std::string all = "(";
    for (const Object* item : key.items) {
      all += (all.size() > 1 ? ", " : "") + text_of(*item, depth + 1);
      RUSH_CHECK_IO(all.size() < (1 << 16), path_, ": not a valid PyTorch file: a key of a dict is endless");
    }
    return all + ")";
  }

  const std::string& path_;
  int visited_ = 0;
};

// How files of PyTorch before 1.6 begin: a pickle of the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kZip = "PK\x03\x04", kOldFormat = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

bool begins_with(const std::string& path, std::string_view bytes) {
  const InputFile file(path);
  std::string first(bytes.size(), '\0');
  if (file.size() < first.size()) return false;
  file.read(0, first.data(), first.size());
  return first == bytes;
}

}  // namespace

NamedValues load_pt_values(const std::string& path) {
  RUSH_CHECK_NOT_IMPLEMENTED(!begins_with(path, kOldFormat), path,
                             ": in the format of PyTorch before 1.6: in Python, torch.load it and torch.save it again");
  PtArchive archive(path);
  const std::string pickle = archive.bytes_of("data.pkl");
  Unpickler unpickler(path, pickle, archive);
  Collector collector(path);
  collector.collect(unpickler.run(), "");
  return std::move(collector.values);
}

NamedTensors load_pt(const std::string& path) {
  NamedTensors tensors;
  for (const auto& [name, value] : load_pt_values(path)) {
    if (value.is<Tensor>()) tensors.emplace_back(name, value.as<Tensor>());
  }
  return tensors;
}

bool is_pt(const std::string& path) { return begins_with(path, kZip) || begins_with(path, kOldFormat); }

}  // namespace rush::io
