#include "optim/state/checkpoint.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/device/out_of_memory.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "optim/state/state_file.h"

namespace rush {

using optim::StateDict;
using optim::StateFields;

namespace {

constexpr const char* kKind = "checkpoint";

class ModulePart final : public Checkpoint::Part {
 public:
  explicit ModulePart(nn::Module& module) : module_(module) {}
  bool only_prepares() const override { return true; }
  StateDict state() const override { return state_dict(module_); }
  // Weights take the most memory: they are only compared here, not copied to be able to go back.
  void load(const StateDict& dict) override {
    own_ = state_dict(module_);
    read_.assign(own_.size(), Tensor());
    StateFields fields(dict);
    for (size_t i = 0; i < own_.size(); ++i) fields.tensor(own_[i].key(), read_[i], own_[i].value());
    fields.finish("module");
  }
  void commit() override {
    const NoGradGuard no_grad;
    for (size_t i = 0; i < read_.size(); ++i) own_[i].value().copy_(read_[i]);
    undo();
  }
  void undo() override {
    own_.clear();
    read_.clear();
  }

 private:
  nn::Module& module_;
  StateDict own_;
  std::vector<Tensor> read_;
};

// What a part that is one tensor consists of: that tensor, under the empty name.
const Tensor& only(const StateDict& dict) {
  const Tensor* value = dict.find("");
  RUSH_CHECK_VALUE(value, "missing");
  RUSH_CHECK_VALUE(dict.size() == 1, "has parts of its own, expected one value");
  return *value;
}

StateDict state_of_bytes(const void* bytes, size_t size) {
  return {{"", tensor(ArrayRef<uint8_t>(static_cast<const uint8_t*>(bytes), size), kUInt8)}};
}

// As a container of bytes or characters.
template <class Bytes>
Bytes bytes_of_state(const StateDict& dict) {
  const Tensor& list = only(dict);
  RUSH_CHECK_VALUE(list.scalar_type() == kUInt8 && list.dim() == 1, "is ", list.scalar_type(), " ", list.sizes(),
                   " instead of a list of ", kUInt8);
  const auto* begin = list.data_ptr<uint8_t>();
  return Bytes(begin, begin + list.numel());
}

class GeneratorPart final : public Checkpoint::Part {
 public:
  explicit GeneratorPart(Generator generator) : generator_(std::move(generator)) {}
  bool only_prepares() const override { return true; }
  StateDict state() const override {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    const std::vector<uint8_t> bytes = generator_.get_state();
    return state_of_bytes(bytes.data(), bytes.size());
  }
  void load(const StateDict& dict) override {
    read_ = bytes_of_state<std::vector<uint8_t>>(dict);
    generator_.clone().set_state(read_);
  }
  void commit() override {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(read_);
  }

 private:
  Generator generator_;
  std::vector<uint8_t> read_;
};

class TextPart final : public Checkpoint::Part {
 public:
  explicit TextPart(std::string& value) : value_(value) {}
  bool only_prepares() const override { return true; }
  StateDict state() const override { return state_of_bytes(value_.data(), value_.size()); }
  void load(const StateDict& dict) override { read_ = bytes_of_state<std::string>(dict); }
  void commit() override { value_.swap(read_); }

 private:
  std::string& value_;
  std::string read_;
};

class ExpectedPart final : public Checkpoint::Part {
 public:
  ExpectedPart(std::string name, std::string text, std::vector<std::string>* changes)
      : name_(std::move(name)), text_(std::move(text)), changes_(changes) {}
  bool only_prepares() const override { return true; }
  StateDict state() const override { return state_of_bytes(text_.data(), text_.size()); }
  void load(const StateDict& dict) override {
    const auto saved = bytes_of_state<std::string>(dict);
    noted_ = false;
    if (saved == text_) return;
    const std::string difference = str("saved with '", saved, "', now '", text_, "'");
    RUSH_CHECK_VALUE(changes_, difference);
    changes_->push_back(str(name_, ": ", difference));
    noted_ = true;
  }
  void commit() override { noted_ = false; }
  void undo() override {
    if (noted_) changes_->pop_back();
    noted_ = false;
  }

 private:
  std::string name_, text_;
  std::vector<std::string>* changes_;  // null: none is allowed
  bool noted_ = false;                 // by this load
};

template <class T>
class FieldPart final : public Checkpoint::Part {
 public:
  explicit FieldPart(T& value) : value_(value) {}
  bool only_prepares() const override { return true; }
  StateDict state() const override {
    StateDict dict("state");
    StateFields fields(&dict);
    T value = value_;
    fields("", value);
    return dict;
  }
  void load(const StateDict& dict) override {
    only(dict);
    StateFields fields(dict);
    fields("", read_);
    fields.finish("one value");
  }
  void commit() override { value_ = std::move(read_); }

 private:
  T& value_;
  T read_{};
};

// Whether it fits; if not, `misfit` says why.
bool load_part(Checkpoint::Part& part, const StateDict& dict, std::string& misfit) {
  try {
    part.load(dict);
  } catch (const ValueError& error) {
    misfit = error.msg();
    return false;
  }
  return true;
}

std::string full_name(const std::string& part, const std::string& key) { return key.empty() ? part : part + "." + key; }

}  // namespace

Checkpoint& Checkpoint::add(const std::string& name, std::unique_ptr<Part> part) {
  RUSH_CHECK_VALUE(!name.empty() && name.find('.') == std::string::npos, "Checkpoint: '", name,
                   "' cannot name a part: a name is not empty and has no dot");
  const bool taken = std::any_of(parts_.begin(), parts_.end(), [&](const Named& each) { return each.name == name; });
  RUSH_CHECK_VALUE(!taken, "Checkpoint: two parts are named '", name, "'");
  RUSH_CHECK_VALUE(part, "Checkpoint: part '", name, "' is null");
  parts_.push_back({name, std::move(part)});
  return *this;
}

Checkpoint& Checkpoint::add(const std::string& name, nn::Module& module) {
  return add(name, std::make_unique<ModulePart>(module));
}

Checkpoint& Checkpoint::add(const std::string& name, const Generator& generator) {
  return add(name, std::make_unique<GeneratorPart>(generator));
}

Checkpoint& Checkpoint::add(const std::string& name, std::string& value) {
  return add(name, std::make_unique<TextPart>(value));
}

Checkpoint& Checkpoint::expect(const std::string& name, std::string text, std::vector<std::string>* changes) {
  return add(name, std::make_unique<ExpectedPart>(name, std::move(text), changes));
}

#define RUSH_ADD_FIELD(type)                                          \
  Checkpoint& Checkpoint::add(const std::string& name, type& value) { \
    return add(name, std::make_unique<FieldPart<type>>(value));       \
  }
RUSH_ADD_FIELD(bool)
RUSH_ADD_FIELD(int64_t)
RUSH_ADD_FIELD(double)
RUSH_ADD_FIELD(std::vector<int64_t>)
RUSH_ADD_FIELD(std::vector<double>)
#undef RUSH_ADD_FIELD

void Checkpoint::save(const std::string& path) const {
  translate_bad_alloc("Checkpoint::save", [&] {
    StateDict all("state");
    for (const Named& each : parts_) {
      for (const StateDict::Item& item : each.part->state()) {
        all.insert(full_name(each.name, item.key()), item.value().detach());
      }
    }
    optim::write_state(path, kKind, all, io::Checksum::Crc32);
  });
}

// What the file has for each part: "net.fc.weight" is "fc.weight" of the part "net". What is nobody's goes to
// `problems`.
std::vector<StateDict> Checkpoint::read(const std::string& path, std::vector<std::string>& problems) const {
  std::vector<StateDict> dicts(parts_.size(), StateDict("state"));
  for (const StateDict::Item& item : optim::read_state(path, kKind, io::Checksum::Crc32)) {
    const size_t dot = item.key().find('.');
    const auto part = std::find_if(parts_.begin(), parts_.end(),
                                   [&](const Named& each) { return item.key().compare(0, dot, each.name) == 0; });
    if (part == parts_.end()) {
      problems.push_back("unexpected: " + item.key());
    } else {
      dicts[static_cast<size_t>(part - parts_.begin())].insert(
          dot == std::string::npos ? "" : item.key().substr(dot + 1), item.value());
    }
  }
  return dicts;
}

void Checkpoint::load(const std::string& path) {
  translate_bad_alloc("Checkpoint::load", [&] {
    std::vector<std::string> problems;
    std::vector<StateDict> dicts = read(path, problems);
    std::vector<std::string> misfits(parts_.size());
    std::vector<Part*> loaded;
    loaded.reserve(parts_.size());
    try {
      // The loads that change something come last: if there is only one, nothing has to be undone.
      for (const bool prepares : {true, false}) {
        for (size_t i = 0; i < parts_.size(); ++i) {
          Part& part = *parts_[i].part;
          if (part.only_prepares() == prepares && load_part(part, dicts[i], misfits[i])) loaded.push_back(&part);
        }
      }
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (!misfits[i].empty()) problems.push_back(parts_[i].name + ": " + misfits[i]);
      }
      RUSH_CHECK_VALUE(problems.empty(), path, ": the checkpoint does not fit; ", detail::joined(problems, "; "));
    } catch (...) {
      dicts.clear();  // there may be little memory left to undo with
      for (Part* part : loaded) part->undo();
      throw;
    }
    for (Part* part : loaded) part->commit();
  });
}

}  // namespace rush
