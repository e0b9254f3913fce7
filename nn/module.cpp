#include "nn/module.h"

#include <mutex>
#include <typeinfo>
#include <unordered_set>
#include <utility>

#include "core/debug/stack_trace.h"
#include "core/threads/stack_space.h"
#include "nn/module_text.h"
#include "nn/registered_name.h"
#include "nn/state/archive.h"

namespace rush::nn {

namespace {

// Calls visit(name, module) for each module once, also where it has several names.
template <class Visit>
void visit_once(const Module& root, const std::string& name, bool include_root, const Visit& visit) {
  std::unordered_set<const Module*> seen;
  for (detail::ModuleWalk walk(root, name); !walk.done(); walk.next()) {
    const bool first = seen.insert(&walk.module()).second;
    if (first && (include_root || walk.depth() > 0)) visit(walk.name(), walk.module());
  }
}

void copy_values(const std::string& name, const OrderedDict<std::string, Tensor>& from,
                 OrderedDict<std::string, Tensor>& to, const std::optional<Device>& device) {
  RUSH_CHECK(from.size() == to.size(), "clone: ", name, " has ", from.size(), " tensors, after reset() its copy has ",
             to.size(), "; register all parameters and buffers in reset(), not in the constructor");
  for (const auto& item : from) {
    Tensor& target = to[item.key()];
    if (!item->defined()) {
      target.reset();
      continue;
    }
    target.set_data(device ? item->detach().to(*device, /*non_blocking=*/false, /*copy=*/true)
                           : item->detach().clone());
    target.set_requires_grad(item->requires_grad());
  }
}

// Guards the links from modules to parents: threads that share modules may set them at the same time.
std::mutex& parents_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// "Net" of "models::NetImpl".
std::string class_name(const std::string& qualified) {
  std::string_view name = qualified;
  const std::string_view scope = name.substr(0, name.find('<'));
  if (const size_t colons = scope.rfind("::"); colons != scope.npos) name.remove_prefix(colons + 2);
  if (name.ends_with("Impl") && name.size() > 4) name.remove_suffix(4);
  return std::string(name);
}

}  // namespace

std::string detail::join_names(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void check_registered_name(const char* what, const std::string& name) {
  RUSH_CHECK_VALUE(!name.empty(), what, " name must not be empty");
  RUSH_CHECK_VALUE(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
}

Module::Module() = default;
Module::Module(std::string name) : name_(std::move(name)) {}

const std::string& Module::name() const {
  // Not known in the constructor, where the object is not yet of its class.
  if (name_.empty()) {
    name_ = demangle(typeid(*this).name());
    // Its own, and those of modules that are its class's arguments.
    for (size_t at = 0; (at = name_.find("rush::nn::", at)) != std::string::npos; ++at) {
      if (at == 0 || name_[at - 1] == '<' || name_[at - 1] == ' ') name_.replace(at, 4, detail::printed_namespace());
    }
  }
  return name_;
}

namespace detail {

static const char* printed_namespace_ = "rush";

const char* printed_namespace() { return printed_namespace_; }
void set_printed_namespace(const char* name) { printed_namespace_ = name; }
std::string printed_prefix() { return std::string(printed_namespace_) + "::nn::"; }

ModuleText& ModuleText::operator+=(std::string_view text) {
  std::string* last = pieces_.empty() ? nullptr : std::get_if<std::string>(&pieces_.back());
  if (last) {
    last->append(text);
  } else {
    pieces_.emplace_back(std::string(text));
  }
  return *this;
}

ModuleText& ModuleText::operator+=(const ModuleText& other) {
  pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
  return *this;
}

std::ostream& operator<<(std::ostream& stream, const ModuleText& text) {
  for (const auto& piece : text.pieces_) {
    if (std::holds_alternative<bool>(piece)) stream << std::boolalpha;
    std::visit([&stream](const auto& value) { stream << value; }, piece);
  }
  return stream;
}

}  // namespace detail

Module::Module(const Module&) = default;
Module& Module::operator=(const Module& other) {
  release_children();
  parameters_ = other.parameters_;
  buffers_ = other.buffers_;
  children_ = other.children_;
  name_ = other.name_;
  is_training_ = other.is_training_;
  return *this;
}
Module::Module(Module&& other) noexcept { *this = std::move(other); }
Module& Module::operator=(Module&& other) noexcept {
  release_children();
  parameters_ = std::move(other.parameters_);
  buffers_ = std::move(other.buffers_);
  children_ = std::move(other.children_);
  name_ = std::move(other.name_);
  is_training_ = other.is_training_;
  adopt_children();
  return *this;
}
void Module::adopt_children() noexcept {
  if (children_.is_empty()) return;
  const std::lock_guard lock(parents_mutex());
  for (auto& child : children_) child.value()->parent_.value = this;
}

void Module::release_children() noexcept {
  if (children_.is_empty()) return;
  const std::lock_guard lock(parents_mutex());
  for (auto& child : children_) {
    if (child.value()->parent_.value == this) child.value()->parent_.value = nullptr;
  }
}

std::string Module::path() const {
  constexpr size_t kDeepest = 1000;  // nobody reads more, and a module that is below itself has no end
  const std::lock_guard lock(parents_mutex());
  std::vector<std::string> names;
  const Module* module = this;
  while (module->parent_.value && names.size() < kDeepest) {
    const Module* parent = module->parent_.value;
    for (const auto& child : parent->children_) {
      if (child.value().get() != module) continue;
      names.push_back(child.key());
      break;
    }
    module = parent;
  }
  std::string path = class_name(module->name());
  for (auto name = names.rbegin(); name != names.rend(); ++name) path += "." + *name;
  return path;
}

std::string ModuleScope::describe(const void* module) { return "in " + static_cast<const Module*>(module)->path(); }

void ModuleScope::begin(const Module& module) {
  ForwardObserver* observer = module.forward_observer().get();
  if (!observer) return;
  observer->begin_forward();
  observer_ = observer;
}

void Module::set_forward_observer(std::shared_ptr<ForwardObserver> observer) {
  observer_.value = std::move(observer);
  ModuleScope::has_observers_ = true;
}

// Its last owner gone, a child is deleted once this destructor is done, so the stack does not grow with the depth.
Module::~Module() {
  release_children();
  static thread_local constinit std::shared_ptr<Module>* waiting = nullptr;
  std::shared_ptr<Module> list;
  const bool outermost = !waiting;
  if (outermost) waiting = &list;
  for (auto& item : children_) {
    std::shared_ptr<Module> child = std::move(item.value());
    if (child.use_count() != 1) continue;
    Module& last_of_all = *child;
    last_of_all.next_destroyed_ = std::exchange(*waiting, std::move(child));
  }
  if (!outermost) return;
  while (list) {
    const std::shared_ptr<Module> next = std::exchange(list, nullptr);
    list = std::move(next->next_destroyed_);
  }
  waiting = nullptr;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  RUSH_THROW(NotImplementedError, "clone() has not been implemented for ", name(), ". Subclass ",
             detail::printed_prefix(), "Cloneable<", name(), "> instead of ", detail::printed_prefix(),
             "Module to inherit the ability to clone");
}

void Module::clone_(Module&, const std::optional<Device>&) {
  RUSH_THROW(NotImplementedError, "clone() has not been implemented for ", name(), ". Subclass ",
             detail::printed_prefix(), "Cloneable<", name(), "> to inherit the ability to clone");
}

void Module::forget_members() {
  parameters_.clear();
  buffers_.clear();
  release_children();
  children_.clear();
}

void Module::copy_members(const Module& from, const std::optional<Device>& device) {
  RUSH_CHECK_NOT_IMPLEMENTED(!from.forward_observer(), "clone: the parameters of ", from.name(),
                             " are sharded; clone it before fully_shard");
  copy_values(from.name(), from.parameters_, parameters_, device);
  copy_values(from.name(), from.buffers_, buffers_, device);
  RUSH_CHECK(children_.size() == from.children_.size(), "clone: ", from.name(), " has ", from.children_.size(),
             " submodules, after reset() its copy has ", children_.size(),
             "; register all submodules in reset(), not in the constructor");
  for (const auto& child : from.children_) children_[child.key()]->clone_(*child.value(), device);
}

std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& name_prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> result("Module");
  visit_once(*this, name_prefix, include_self, [&](const std::string& name, const Module& module) {
    result.insert(name, detail::shared_module(module));
  });
  return result;
}

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  std::vector<std::shared_ptr<Module>> result;
  visit_once(*this, "", include_self,
             [&](const std::string&, const Module& module) { result.push_back(detail::shared_module(module)); });
  return result;
}

std::shared_ptr<Module> detail::shared_module(const Module& module) {
  const std::shared_ptr<const Module> shared = module.weak_from_this().lock();
  RUSH_CHECK(shared, module.name(),
             " is not held by a std::shared_ptr: make it with std::make_shared, or pass include_self=false");
  return std::const_pointer_cast<Module>(shared);
}

void Module::save(serialize::OutputArchive& archive) const {
  check_stack_space("Module::save");
  for (const auto* tensors : {&parameters_, &buffers_}) {
    for (const auto& item : *tensors) {
      if (item->defined()) archive.write(item.key(), item.value(), tensors == &buffers_);
    }
  }
  for (const auto& child : children_) {
    serialize::OutputArchive inner;
    child.value()->save(inner);
    archive.write(child.key(), inner);
  }
}

void Module::load(serialize::InputArchive& archive) {
  check_stack_space("Module::load");
  for (auto* tensors : {&parameters_, &buffers_}) {
    for (auto& item : *tensors) {
      if (item->defined()) archive.read(item.key(), item.value(), tensors == &buffers_);
    }
  }
  for (auto& child : children_) {
    serialize::InputArchive inner;
    if (archive.try_read(child.key(), inner) || !child.value()->parameters().empty()) child.value()->load(inner);
  }
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_registered_name("Submodule", name);
  RUSH_CHECK_VALUE(module, "register_module: '", name, "' is null");
  RUSH_CHECK_VALUE(!is_below(*module), "register_module: '", name,
                   "' is the module that it would be below, or contains it");
  Module& added = *children_.insert(std::move(name), std::move(module));
  const std::lock_guard lock(parents_mutex());
  added.parent_.value = this;
}

bool Module::is_below(const Module& other) const {
  const std::lock_guard lock(parents_mutex());
  const Module* above = this;
  while (above && above != &other) above = above->parent_.value;
  return above;
}

void Module::replace_child(const std::string& name, std::shared_ptr<Module> module) {
  std::shared_ptr<Module>& child = children_[name];
  release_children();
  child = std::move(module);
  adopt_children();
}

void Module::unregister_module(const std::string& name) {
  RUSH_CHECK_VALUE(children_.contains(name), "No Module with name `", name, "` is registered");
  const std::shared_ptr<Module> gone = children_[name];
  release_children();
  children_.erase(name);
  adopt_children();
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  std::string indentation;
  const auto close = [&](size_t from, size_t to) {
    for (size_t depth = from; depth-- > to;) {
      indentation.resize(2 * depth);
      stream << '\n' << indentation << ')';
    }
  };
  size_t previous = 0;  // depth
  for (detail::ModuleWalk walk(module, ""); !walk.done(); walk.next()) {
    if (walk.depth() > previous) stream << '(';
    close(previous, walk.depth());
    if (walk.depth() > 0) {
      indentation.resize(2 * walk.depth(), ' ');
      stream << '\n' << indentation << '(' << walk.key() << "): ";
    }
    walk.module().pretty_print(stream);
    previous = walk.depth();
  }
  close(previous, 0);
  return stream;
}

}  // namespace rush::nn
