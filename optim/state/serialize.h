// save and load, as libtorch's programs call them, in safetensors files that other programs read too.
#pragma once
#include <concepts>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/module.h"
#include "nn/state/archive.h"
#include "nn/state/module_state.h"
#include "nn/state/temporary_file.h"
#include "optim/optimizer.h"
#include "optim/state/state_dict.h"

namespace rush {

namespace optim {
/// An optimiser, a schedule, a DataLoader: whatever gives a state dict and takes it back, or throws and stays as it
/// was.
template <class T>
concept Stateful = requires(T& part, const StateDict& dict) {
  StateDict(part.state_dict());
  part.load_state_dict(dict);
};

/// An optimiser of a program's own that overrides save and load.
template <class T>
concept SavesItself = std::derived_from<T, Optimizer> &&
    !std::same_as<decltype(&T::save), void (Optimizer::*)(serialize::OutputArchive&) const>;
}  // namespace optim

/// Writes a value to `path`: the old file or the whole new one is there, never a part. Throws IOError if it cannot be
/// written, ValueError for an undefined tensor or one without data.
void save(const Tensor& value, const std::string& path);
void save(const std::vector<Tensor>& values, const std::string& path);
void save(const nn::Module& module, const std::string& path);
template <class M>
requires std::is_base_of_v<nn::Module, M>
void save(const std::shared_ptr<M>& module, const std::string& path) {
  RUSH_CHECK_VALUE(module, "save: the module is null");
  save(static_cast<const nn::Module&>(*module), path);
}
template <class M>
void save(const nn::ModuleHolder<M>& module, const std::string& path) {
  save(module.ptr(), path);
}

/// Reads what save wrote; a module's values also from a file into which Python's torch.save put its state_dict().
/// Throws IOError, in one line that starts with `path`, if the file cannot be read, is damaged or holds something else;
/// ValueError, as load_state_dict, if it does not fit. The value then is as it was. A defined tensor keeps its place in
/// modules and optimisers and gets other data; a module or optimiser keeps its tensors and gets their values. `device`
/// is where the value goes; by default tensors go to the CPU and a module stays where it is.
void load(Tensor& value, const std::string& path, std::optional<Device> device = std::nullopt);
void load(std::vector<Tensor>& values, const std::string& path, std::optional<Device> device = std::nullopt);
void load(nn::Module& module, const std::string& path, std::optional<Device> device = std::nullopt);
template <class M>
requires std::is_base_of_v<nn::Module, M>
void load(const std::shared_ptr<M>& module, const std::string& path, std::optional<Device> device = std::nullopt) {
  RUSH_CHECK_VALUE(module, "load: the module is null");
  load(static_cast<nn::Module&>(*module), path, device);
}
template <class M>
void load(const nn::ModuleHolder<M>& module, const std::string& path, std::optional<Device> device = std::nullopt) {
  load(module.ptr(), path, device);
}

namespace detail {
void save_state(const optim::StateDict& dict, const std::string& path);
optim::StateDict load_state(const std::string& path);
[[noreturn]] void rethrow_misfit(const std::string& path, const ValueError& error);
}  // namespace detail

/// The same for an optimiser, a schedule or a DataLoader. What is read goes to where its tensors are, so that `device`
/// changes nothing.
template <class T>
requires optim::Stateful<std::remove_const_t<T>>
void save(T& value, const std::string& path) {
  if constexpr (optim::SavesItself<std::remove_const_t<T>>) {
    serialize::OutputArchive archive;
    value.save(archive);
    archive.save_to(path);
  } else {
    detail::save_state(value.state_dict(), path);
  }
}
template <optim::Stateful T>
requires(!optim::SavesItself<T>) void load(T& value, const std::string& path,
                                           std::optional<Device> /*device*/ = std::nullopt) {
  const optim::StateDict dict = detail::load_state(path);
  try {
    value.load_state_dict(dict);
  } catch (const ValueError& error) {
    detail::rethrow_misfit(path, error);
  }
}

template <optim::SavesItself T>
void load(T& value, const std::string& path, std::optional<Device> device = std::nullopt) {
  serialize::InputArchive archive;
  archive.load_from(path, device);
  value.load(archive);
}

namespace detail {
template <class Target>
concept TakesBytes = requires(const serialize::TemporaryFile& file, Target& target) {
  file.copy_to(target);
};
template <class T>
concept Loadable = requires(T& value, const std::string& path) {
  load(value, path);
};
// From a file that `fill` fills.
template <class T>
void load_through_file(T& value, std::optional<Device> device, const auto& fill) {
  const serialize::TemporaryFile file;
  fill(file);
  load(value, file.path(), device);
}
}  // namespace detail

/// All of these to a stream or a writer of the program's, and from a stream, memory or a reader, with the same bytes as
/// in a file: save(net, [&](const void* data, size_t size) { ... return size; }), load(net, data, size).
template <class T, detail::TakesBytes Target>
requires requires(T&& value, const std::string& path) { save(value, path); }
void save(T&& value, Target&& target) {
  const serialize::TemporaryFile file;
  save(value, file.path());
  file.copy_to(target);
}

template <std::derived_from<std::istream> Stream, detail::Loadable T>
void load(T& value, Stream& stream, std::optional<Device> device = std::nullopt) {
  detail::load_through_file(value, device, [&](const serialize::TemporaryFile& file) { file.copy_from(stream); });
}
template <detail::Loadable T>
void load(T& value, const char* data, size_t size, std::optional<Device> device = std::nullopt) {
  detail::load_through_file(value, device, [&](const serialize::TemporaryFile& file) { file.copy_from(data, size); });
}
template <detail::Loadable T, std::invocable Size>
void load(T& value, const serialize::ByteReader& reader, const Size& size,
          std::optional<Device> device = std::nullopt) {
  detail::load_through_file(value, device,
                            [&](const serialize::TemporaryFile& file) { file.copy_from(reader, size()); });
}

}  // namespace rush
