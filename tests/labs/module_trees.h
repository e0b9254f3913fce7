// Trees of modules for lab 7, described in a table. What a tree has to list is found by recursion over the table.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/factory/factories.h"
#include "core/str.h"
#include "nn/module.h"

namespace rush::labs {

enum class Kind {
  Weight,
  Frozen,
  Mean,
  Count,
  NoWeight
};  // parameters; buffers of float32 and of int64; an undefined parameter

inline bool is_parameter(Kind kind) { return kind != Kind::Mean && kind != Kind::Count; }

struct Slot {
  const char* name;
  Kind kind;
  int tensor;  // its number, which is also its first element
};
struct Below {
  const char* name;
  size_t module;
};
struct ModuleRow {
  std::vector<Slot> slots;
  std::vector<Below> below = {};
  bool stays_in_eval = false;  // its class overrides train()
};
using Tree = std::vector<ModuleRow>;  // the first is the root

// visit(name, key, depth, number) for the module of that number and all below it.
template <class Visit>
void visit_tree(const Tree& tree, const Visit& visit, size_t module = 0, const std::string& name = "",
                const std::string& key = "", size_t depth = 0) {
  visit(name, key, depth, module);
  for (const Below& below : tree[module].below) {
    visit_tree(tree, visit, below.module, name.empty() ? below.name : name + "." + below.name, below.name, depth + 1);
  }
}

inline std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// "net(scale, fc(weight, bias))"
inline std::string show(const Tree& tree, size_t module = 0, const std::string& name = "net") {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  for (const Slot& slot : tree[module].slots) {
    const char* kinds[] = {"", " (frozen)", " (buffer)", " (buffer, int64)", " (undefined)"};
    add(slot.name + std::string(kinds[static_cast<int>(slot.kind)]));
  }
  for (const Below& below : tree[module].below) add(show(tree, below.module, below.name));
  return str(name, "(", text, ")");
}

// A tree alone, for a table of exercises.
inline std::string show_tree(const Tree& tree) { return show(tree); }

// ---- the modules of a tree ----

struct OpenModule : nn::Module {
  explicit OpenModule(bool stays_in_eval = false) : stays_in_eval(stays_in_eval) {}
  void train(bool on) override { nn::Module::train(on && !stays_in_eval); }
  const OrderedDict<std::string, Tensor>& own_parameters() const { return parameters_; }
  const bool stays_in_eval;
};

inline Tensor numbers(double first, ScalarType dtype = kFloat32) {
  const double values[] = {first, first + 1};
  return tensor(ArrayRef<double>(values), dtype);
}

inline std::string values_text(const Tensor& t) {
  const Tensor values = t.detach().to(kFloat64).contiguous();
  return str("(", values.data_ptr<double>()[0], ", ", values.data_ptr<double>()[1], ")");
}

struct Grown {
  std::vector<std::shared_ptr<OpenModule>> modules;
  std::map<int, Tensor> tensors;

  explicit Grown(const Tree& tree) {
    for (const ModuleRow& row : tree) {
      modules.push_back(std::make_shared<OpenModule>(row.stays_in_eval));
      for (const Slot& slot : row.slots) add(*modules.back(), slot);
    }
    for (size_t i = 0; i < tree.size(); ++i) {
      for (const Below& below : tree[i].below) modules[i]->register_module(below.name, modules[below.module]);
    }
  }
  nn::Module& root() { return *modules.front(); }

  // "tensor 3", the number of a tensor of the tree.
  std::string text(const Tensor& tensor) const {
    if (!tensor.defined()) return "undefined";
    for (const auto& [number, known] : tensors) {
      if (known.is_same(tensor)) return str("tensor ", number);
    }
    return "another tensor";
  }

 private:
  void add(nn::Module& module, const Slot& slot) {
    Tensor& tensor = tensors[slot.tensor];
    if (!tensor.defined() && slot.kind != Kind::NoWeight) {
      tensor = numbers(slot.tensor, slot.kind == Kind::Count ? kInt64 : kFloat32);
    }
    if (is_parameter(slot.kind)) {
      module.register_parameter(slot.name, tensor, slot.kind == Kind::Weight);
    } else {
      module.register_buffer(slot.name, tensor);
    }
  }
};

// The first name of each tensor: parameters, or buffers, in the order of the walk.
struct NamedSlot {
  std::string name;
  Slot slot;
  size_t depth, module;
};
inline std::vector<NamedSlot> named_slots(const Tree& tree, bool parameters, bool each_once = true) {
  std::vector<NamedSlot> slots;
  visit_tree(tree, [&](const std::string& prefix, const std::string&, size_t depth, size_t module) {
    for (const Slot& slot : tree[module].slots) {
      if (is_parameter(slot.kind) != parameters || slot.kind == Kind::NoWeight) continue;
      bool is_known = false;
      for (const NamedSlot& known : slots) is_known |= known.slot.tensor == slot.tensor;
      if (!is_known || !each_once) slots.push_back({joined(prefix, slot.name), slot, depth, module});
    }
  });
  return slots;
}
inline std::vector<NamedSlot> all_slots(const Tree& tree) {
  std::vector<NamedSlot> slots = named_slots(tree, /*parameters=*/true);
  for (const NamedSlot& buffer : named_slots(tree, /*parameters=*/false)) slots.push_back(buffer);
  return slots;
}

inline const Tree kOne = {{{{"w", Kind::Weight, 1}, {"b", Kind::Weight, 2}}}};
inline const Tree kMixed = {{{{"w", Kind::Weight, 1},
                              {"mean", Kind::Mean, 2},
                              {"f", Kind::Frozen, 3},
                              {"none", Kind::NoWeight, 0},
                              {"count", Kind::Count, 4}}}};
inline const Tree kFlat = {{{{"w", Kind::Weight, 1}}, {{"a", 1}, {"b", 2}}},
                           {{{"p", Kind::Weight, 2}}},
                           {{{"q", Kind::Weight, 3}, {"mean", Kind::Mean, 4}}}};
inline const Tree kNet = {
    {{{"scale", Kind::Weight, 1}, {"steps", Kind::Count, 2}}, {{"fc1", 1}, {"body", 2}, {"fc2", 4}}},
    {{{"weight", Kind::Weight, 3}, {"bias", Kind::Weight, 4}}},
    {{}, {{"0", 5}, {"1", 3}}},
    {{{"weight", Kind::Weight, 5}, {"mean", Kind::Mean, 6}, {"count", Kind::Count, 7}}},
    {{{"weight", Kind::Frozen, 8}, {"bias", Kind::NoWeight, 0}}},
    {{}}};
inline const Tree kTied = {{{{"first", Kind::Weight, 1}}, {{"in", 1}, {"out", 2}, {"again", 1}}},
                           {{{"weight", Kind::Weight, 2}, {"mean", Kind::Mean, 4}}},
                           {{{"weight", Kind::Weight, 2}, {"bias", Kind::Weight, 3}}}};
inline const Tree kStays = {{{}, {{"a", 1}, {"norm", 2}}}, {{}, {{"b", 3}}}, {{}, {{"c", 4}}, true}, {{}}, {{}}};

}  // namespace rush::labs
