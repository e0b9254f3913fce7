// Modules that hold modules: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict.
#pragma once
#include <initializer_list>

#include "core/threads/stack_space.h"
#include "nn/any_module.h"
#include "nn/cloneable.h"

namespace rush::nn {

/// Calls its modules in a row, each with what the one before returned. They are named "0", "1", ... unless given names:
/// Sequential({{"fc", Linear(4, 2)}, {"act", ReLU()}}). torch.nn.Sequential.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  template <class... Modules>
  requires(sizeof...(Modules) > 0 && !(std::is_same_v<std::decay_t<Modules>, SequentialImpl> || ...) &&
           !(std::is_same_v<std::decay_t<Modules>, std::initializer_list<NamedAnyModule>> || ...) &&
           !(std::is_same_v<std::decay_t<Modules>, OrderedDict<std::string, AnyModule>> ||
             ...)) explicit SequentialImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& each : modules) push_back(each.name(), each.module());
  }
  explicit SequentialImpl(const OrderedDict<std::string, AnyModule>& modules) {
    for (const auto& each : modules) push_back(each.key(), each.value());
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class Return = Tensor, class... Inputs>
  Return forward(Inputs&&... inputs) {
    check_stack_space("Sequential: forward");
    const ModuleScope scope(*this);
    RUSH_CHECK(!is_empty(), "Sequential: forward of an empty one");
    std::vector<std::any> values;
    (values.push_back(detail::pack(std::forward<Inputs>(inputs))), ...);
    for (const AnyModule& module : modules_) {
      std::any result = module.forward_packed(values);
      values.clear();
      values.push_back(std::move(result));
    }
    Return* value = std::any_cast<Return>(&values[0]);
    if (!value) detail::throw_other_type("Sequential: the result is asked for as", typeid(Return), values[0].type());
    return std::move(*value);
  }

  /// Appends a module under `name`, or under its position.
  void push_back(AnyModule module) { push_back(std::to_string(modules_.size()), std::move(module)); }
  void push_back(std::string name, AnyModule module) {
    register_module(std::move(name), module.ptr());
    modules_.push_back(std::move(module));
  }
  template <class M>
  requires std::is_base_of_v<Module, M>
  void push_back(std::shared_ptr<M> module) { push_back(AnyModule(std::move(module))); }
  template <class M>
  requires std::is_base_of_v<Module, M>
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M>
  requires std::is_base_of_v<Module, std::decay_t<M>> || detail::is_module_holder<M>
  void push_back(M&& module) { push_back(AnyModule(std::forward<M>(module))); }
  template <class M>
  requires std::is_base_of_v<Module, std::decay_t<M>> || detail::is_module_holder<M>
  void push_back(std::string name, M&& module) { push_back(std::move(name), AnyModule(std::forward<M>(module))); }

  /// Appends all modules of another container.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  /// In their order. operator[] throws IndexError as ptr does.
  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  /// Throws IndexError when there is no such position.
  std::shared_ptr<Module> ptr(size_t index) const {
    check_index(index);
    return modules_[index].ptr();
  }
  template <class T>
  std::shared_ptr<T> ptr(size_t index) const {
    check_index(index);
    return modules_[index].template ptr<T>();
  }
  template <class T>
  auto& at(size_t index) const {
    check_index(index);
    return modules_[index].template get<detail::contained_t<T>>();
  }

 private:
  void check_index(size_t index) const {
    RUSH_CHECK_INDEX(index < modules_.size(), "Sequential: position ", index, " of ", modules_.size());
  }

  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> modules) : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

/// A list of modules, which its owner calls as it likes. They are named "0", "1", ... torch.nn.ModuleList.
class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class... Modules>
  requires(sizeof...(Modules) > 0 && !(std::is_same_v<std::decay_t<Modules>, ModuleListImpl> ||
                                       ...)) explicit ModuleListImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// Appends a module under its position.
  void push_back(std::shared_ptr<Module> module);
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M>
  requires std::is_base_of_v<Module, std::decay_t<M>>
  void push_back(M&& module) {
    push_back(std::static_pointer_cast<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  /// Puts a module before position `index`; those behind move on, names included.
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M>
  void insert(size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  /// In their order. operator[] throws IndexError as ptr does.
  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  /// Throws IndexError when there is no such position.
  std::shared_ptr<Module> ptr(size_t index) const;
  /// The module at `index` as its class. Throws TypeError when it is another.
  template <class T>
  auto& at(size_t index) const {
    auto* module = ptr(index)->template as<T>();
    RUSH_CHECK_TYPE(module, "ModuleList: position ", index, " holds ", modules_[index]->name());
    return *module;
  }
  /// The same as a pointer that shares it.
  template <class T>
  std::shared_ptr<T> ptr(size_t index) const {
    at<T>(index);
    return std::static_pointer_cast<T>(ptr(index));
  }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
RUSH_MODULE(ModuleList);

/// Modules by name. torch.nn.ModuleDict.
class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Items = OrderedDict<std::string, std::shared_ptr<Module>>;
  using Iterator = Items::Iterator;
  using ConstIterator = Items::ConstIterator;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) insert(key, module);
  }
  explicit ModuleDictImpl(const Items& modules) { update(modules); }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  /// Adds a module, or replaces the one of that name.
  void insert(const std::string& key, std::shared_ptr<Module> module);
  /// Inserts all of another dictionary, or of a list of pairs.
  void update(const Items& modules) {
    for (const auto& each : modules) insert(each.key(), each.value());
  }
  template <class Pairs>
  requires(!std::convertible_to<const Pairs&, const Items&>) void update(const Pairs& modules) {
    for (const auto& each : modules) {
      if constexpr (requires { each.pair(); }) {
        insert(each.key(), each.value());
      } else {
        insert(each.first, each.second);
      }
    }
  }
  /// Removes a module and returns it. Throws ValueError when there is no such key.
  std::shared_ptr<Module> pop(const std::string& key);
  void clear();  // removes all modules

  /// In the order in which they were inserted.
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const;
  std::vector<std::string> keys() const { return children_dict().keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children(); }
  Iterator begin() { return children_dict().begin(); }
  Iterator end() { return children_dict().end(); }
  ConstIterator begin() const { return children_dict().begin(); }
  ConstIterator end() const { return children_dict().end(); }
  size_t size() const noexcept { return children_dict().size(); }
  bool empty() const noexcept { return children_dict().is_empty(); }
  bool contains(const std::string& key) const noexcept { return children_dict().contains(key); }
  /// Throws ValueError when there is no such key.
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_dict()[key]; }
  template <class T>
  auto& at(const std::string& key) const {
    auto* module = (*this)[key]->template as<T>();
    RUSH_CHECK_TYPE(module, "ModuleDict: '", key, "' holds another class than the one asked for");
    return *module;
  }
};
RUSH_MODULE(ModuleDict);

/// Parameters named "0", "1", ... torch.nn.ParameterList.
class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  explicit ParameterListImpl(const std::vector<Tensor>& parameters) { extend(parameters); }
  template <class... Tensors>
  requires(sizeof...(Tensors) > 0 &&
           (std::is_convertible_v<Tensors, Tensor> && ...)) explicit ParameterListImpl(const Tensors&... parameters) {
    (append(parameters), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  /// Adds a parameter, which keeps its requires_grad. Of a dictionary's item, the key is left out.
  void append(const Tensor& parameter);
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  /// Appends all of another list, of a vector, or of a dictionary.
  template <class Container>
  void extend(const Container& parameters) {
    for (const auto& each : parameters) append(each);
  }
  template <class Container>
  ParameterListImpl& operator+=(const Container& parameters) {
    extend(parameters);
    return *this;
  }

  /// In their order. operator[] throws IndexError as at does.
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  Tensor& operator[](size_t index) { return at(index); }
  const Tensor& operator[](size_t index) const { return at(index); }
  /// Throws IndexError when there is no such position.
  Tensor& at(size_t index);
  const Tensor& at(size_t index) const;
};
RUSH_MODULE(ParameterList);

/// Parameters by name. torch.nn.ParameterDict.
class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    for (const auto& each : parameters) insert(each.key(), each.value());
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  /// Adds a parameter, which keeps its requires_grad. Throws ValueError when the key is taken.
  Tensor& insert(const std::string& key, const Tensor& parameter);
  /// Inserts all of another dictionary; of a key that is there already, the parameter is replaced.
  template <class Container>
  void update(const Container& parameters) {
    for (const auto& each : parameters) {
      if (contains(each.key())) {
        parameters_[each.key()] = each.value();
      } else {
        insert(each.key(), each.value());
      }
    }
  }
  /// Removes a parameter and returns it. Throws ValueError when there is no such key.
  Tensor pop(const std::string& key);
  void clear() { parameters_.clear(); }  // removes all parameters

  /// In the order in which they were inserted.
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  /// Throws ValueError when there is no such key.
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  const Tensor& operator[](const std::string& key) const { return parameters_[key]; }
  Tensor& get(const std::string& key) { return parameters_[key]; }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
};
RUSH_MODULE(ParameterDict);

}  // namespace rush::nn
