// Module: the base of everything that has parameters. It owns its parameters, buffers and submodules by name.
#pragma once
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.h"
#include "nn/module_holder.h"
#include "nn/ordered_dict.h"

namespace rush::serialize {
class InputArchive;
class OutputArchive;
}  // namespace rush::serialize

namespace rush::nn {

namespace detail {
class ModuleWalk;
}

// Note [Modules are shared]
// A module lives in a std::shared_ptr: its parent holds it by name in `children_`, and the parent's class usually keeps
// a second handle as a member, with which `forward` calls it. Classes come in pairs: `LinearImpl` derives from Module,
// and `Linear` is a ModuleHolder<LinearImpl>, a shared_ptr that constructs what it points to.
//
// However deep modules are nested: what visits all of them (parameters, apply, printing, destruction) does not recurse.
// What a class may override, or write itself, does (train, to, zero_grad, clone, forward), and throws an Error when the
// stack ends.
//
// Derive from Module, register what you own in the constructor, and write a `forward` of any signature.
class Module : public std::enable_shared_from_this<Module> {
 public:
  /// Without a name, it is taken from the class.
  explicit Module(std::string name);
  Module();
  Module(const Module&);
  Module& operator=(const Module&);
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  virtual ~Module();

  /// "rush::nn::LinearImpl" (in a program written for libtorch "torch::nn::LinearImpl"), or what the constructor was
  /// given.
  const std::string& name() const;
  /// "Net.encoder.fc1": the names under which this module and its parents are registered, after the class of the
  /// outermost one. Of several parents, the one that registered it last.
  std::string path() const;

  /// A module of the same class with parameters, buffers and submodules of its own, equal to this one's, on `device` if
  /// one is given. Throws NotImplementedError unless the class derives from Cloneable.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  /// Calls fn on this module, then on all below it. `fn` takes one of (Module&), (const Module&), (const
  /// std::shared_ptr<Module>&), each optionally with the module's full name, a const std::string&, before it.
  template <class Fn>
  void apply(const Fn& fn, const std::string& name_prefix = "");
  template <class Fn>
  void apply(const Fn& fn, const std::string& name_prefix = "") const;

  /// Parameters and buffers: own ones first, then the submodules', named "conv1.weight". What is registered in two
  /// places (a tied weight) is listed once, under the first name, so that no optimiser updates it twice; undefined
  /// tensors are left out.
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;

  /// This module (under the name `name_prefix`) and all below it, each once.
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = "",
                                                                  bool include_self = true) const;
  /// Direct submodules.
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }

  /// Training mode, for this module and all below it: dropout and batch normalisation behave differently.
  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }

  /// Moves parameters, buffers and gradients, in place: optimisers keep pointing at them. A dtype applies to floating
  /// point and complex tensors only, as in Python; libtorch converts integer buffers too. Throws Error for the dtype of
  /// whole numbers or truth values where a parameter requires a gradient.
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false);
  virtual void to(ScalarType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);

  /// Drops the gradients of all parameters, or fills them with zero.
  virtual void zero_grad(bool set_to_none = true);

  /// Writes parameters, buffers and, each as an archive, the submodules, by their names: nn/state/archive.h.
  virtual void save(serialize::OutputArchive& archive) const;
  /// Reads them. Throws ValueError naming the key that the archive lacks or whose shape is another; what was read until
  /// then is kept, so that load_state_dict is the safer way.
  virtual void load(serialize::InputArchive& archive);

  /// This module as the given class (LinearImpl or Linear); null when it is another.
  template <class ModuleType>
  auto* as() noexcept {
    return dynamic_cast<detail::contained_t<ModuleType>*>(this);
  }
  template <class ModuleType>
  const auto* as() const noexcept {
    return dynamic_cast<const detail::contained_t<ModuleType>*>(this);
  }

  /// Writes what stands for this module when it is printed: "rush::nn::Linear(in_features=2, out_features=3,
  /// bias=true)".
  virtual void pretty_print(std::ostream& stream) const;

  /// Takes ownership under a name, and returns what was registered. Throws ValueError when the name is empty, has a dot
  /// or is taken. A parameter may be undefined, for one that an option turned off.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  /// State that is not trained: running statistics, masks.
  Tensor& register_buffer(std::string name, Tensor tensor);
  /// Makes the module a submodule and returns it. Throws ValueError for a name that is taken, empty or has a dot, and
  /// for a module that is null, this one, or contains this one.
  template <class ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, std::shared_ptr<ModuleType> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, ModuleHolder<ModuleType> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  /// As register_module, in place of the submodule that has the name. Throws ValueError when there is none.
  template <class ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name, std::shared_ptr<ModuleType> module) {
    replace_child(name, module);
    return module;
  }
  template <class ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name, ModuleHolder<ModuleType> holder) {
    return replace_module(name, holder.ptr());
  }
  /// Throws ValueError when there is no such submodule.
  void unregister_module(const std::string& name);

  /// What sees the forward calls of this module; null for most. A copy of the module has none. Note [Forward
  /// observers].
  const std::shared_ptr<ForwardObserver>& forward_observer() const { return observer_.value; }
  void set_forward_observer(std::shared_ptr<ForwardObserver> observer);

 protected:
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  // Direct submodules, for containers that show them.
  OrderedDict<std::string, std::shared_ptr<Module>>& children_dict() noexcept { return children_; }
  const OrderedDict<std::string, std::shared_ptr<Module>>& children_dict() const noexcept { return children_; }

 private:
  friend class CloneableBase;
  friend class detail::ModuleWalk;
  friend std::ostream& operator<<(std::ostream& stream, const Module& module);

  // What a copy of a module has none of.
  template <class T>
  struct NotCopied {
    NotCopied() = default;
    NotCopied(const NotCopied&) {}
    NotCopied& operator=(const NotCopied&) { return *this; }
    T value{};
  };

  void add_child(std::string name, std::shared_ptr<Module> module);
  // Whether `other` is this module or one of its parents.
  bool is_below(const Module& other) const;
  void replace_child(const std::string& name, std::shared_ptr<Module> module);
  void adopt_children() noexcept;
  void release_children() noexcept;
  // Takes over the state of `other`, a module of the same class. Cloneable knows how.
  virtual void clone_(Module& other, const std::optional<Device>& device);
  // Cloning, between the steps that need to know the class: before and after reset() of the copy.
  void forget_members();
  void copy_members(const Module& from, const std::optional<Device>& device);
  void convert(const TensorOptions& target, bool non_blocking);

  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};
  mutable std::string name_;
  NotCopied<const Module*> parent_;  // that registered this one last
  NotCopied<std::shared_ptr<ForwardObserver>> observer_;
  bool is_training_ = true;
  std::shared_ptr<Module> next_destroyed_;  // in the list of those that wait for ~Module
};

/// The module and all below it, indented.
std::ostream& operator<<(std::ostream& stream, const Module& module);

namespace detail {

// "layer" + "weight" -> "layer.weight"
std::string join_names(const std::string& prefix, const std::string& name);
// Goes through a module and all below it, each before those below it:
//   for (ModuleWalk walk(root, ""); !walk.done(); walk.next()) ...
class ModuleWalk {
 public:
  ModuleWalk(const Module& root, std::string name);
  bool done() const { return levels_.empty(); }
  void next();
  Module& module() const { return *levels_.back().module; }
  // From the root's name on: "net.conv1".
  const std::string& name() const { return name_; }
  // The name that its parent knows it by.
  std::string_view key() const { return std::string_view(name_).substr(name_.size() - levels_.back().key_size); }
  // What the module itself has registered, also what has two names there.
  const OrderedDict<std::string, Tensor>& parameters() const { return module().parameters_; }
  const OrderedDict<std::string, Tensor>& buffers() const { return module().buffers_; }
  // 0 for the root.
  size_t depth() const { return levels_.size() - 1; }

 private:
  struct Level {
    std::shared_ptr<Module> owner;  // null for the root; what is called meanwhile may replace modules
    Module* module;
    size_t name_size, key_size, next_child = 0;
  };
  std::vector<Level> levels_;  // from the root down
  std::string name_;
};

// The pointer that holds the module. Throws Error when it is not held by a std::shared_ptr.
std::shared_ptr<Module> shared_module(const Module& module);

template <class Fn, class M>
void call_with_module(const Fn& fn, const std::string& name, M& module) {
  if constexpr (std::is_invocable_v<Fn, M&>) {
    fn(module);
  } else if constexpr (std::is_invocable_v<Fn, const std::string&, M&>) {
    fn(name, module);
  } else {
    const std::shared_ptr<Module> shared = shared_module(module);
    if constexpr (std::is_invocable_v<Fn, const std::shared_ptr<Module>&>) {
      fn(shared);
    } else {
      fn(name, shared);
    }
  }
}

}  // namespace detail

template <class Fn>
void Module::apply(const Fn& fn, const std::string& name_prefix) {
  for (detail::ModuleWalk walk(*this, name_prefix); !walk.done(); walk.next()) {
    detail::call_with_module(fn, walk.name(), walk.module());
  }
}

template <class Fn>
void Module::apply(const Fn& fn, const std::string& name_prefix) const {
  for (detail::ModuleWalk walk(*this, name_prefix); !walk.done(); walk.next()) {
    const Module& module = walk.module();
    detail::call_with_module(fn, walk.name(), module);
  }
}

}  // namespace rush::nn
