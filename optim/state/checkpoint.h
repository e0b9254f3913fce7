// Checkpoint: everything that a training run consists of in one file, from which it goes on bit by bit.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/generator.h"
#include "nn/module.h"
#include "optim/state/serialize.h"
#include "optim/state/state_dict.h"

namespace rush {

// Note [Checkpoints]
// A checkpoint is a list of parts, each with a name: modules, optimisers, schedules, generators, loaders, numbers and
// lists of numbers. It is named once and serves both ways,
//
//   rush::Checkpoint checkpoint;
//   checkpoint.add("net", net).add("optimizer", optimizer).add("schedule", schedule);
//   checkpoint.add("random", rush::default_generator()).add("loader", *loader).add("epoch", epoch);
//   if (resume) checkpoint.load(path);
//   ... checkpoint.save(path) every so many steps
//
// and refers to its parts, which must outlive it. The file is a safetensors file, so that Python reads the weights, and
// ends with the CRC-32 of all before it. Saving replaces the old file in one step (io::AtomicFile); loading takes over
// all parts or none.
class Checkpoint {
 public:
  /// A part of a kind of your own: derive from it, and pass it to add.
  class Part {
   public:
    virtual ~Part() = default;
    /// What a file keeps of it, and `load` gets back.
    virtual optim::StateDict state() const = 0;
    /// Takes over `dict`, or gets ready to. Throws ValueError, and changes nothing, if it does not fit.
    virtual void load(const optim::StateDict& dict) = 0;
    /// Whether `load` changes nothing that others see before `commit`.
    virtual bool only_prepares() const { return false; }
    /// After all parts were loaded; must not throw.
    virtual void commit() {}
    /// Takes back what `load` did, because another part's failed.
    virtual void undo() {}
  };

  Checkpoint() = default;
  Checkpoint(Checkpoint&&) noexcept = default;
  Checkpoint& operator=(Checkpoint&&) noexcept = default;

  /// All throw ValueError for a name that is empty, has a dot or is taken.
  Checkpoint& add(const std::string& name, std::unique_ptr<Part> part);
  Checkpoint& add(const std::string& name, nn::Module& module);
  template <class M>
  requires std::is_base_of_v<nn::Module, M> Checkpoint& add(const std::string& name, const std::shared_ptr<M>& module) {
    RUSH_CHECK_VALUE(module, "Checkpoint: module '", name, "' is null");
    return add(name, static_cast<nn::Module&>(*module));
  }
  template <class M>
  Checkpoint& add(const std::string& name, const nn::ModuleHolder<M>& module) {
    return add(name, module.ptr());
  }
  Checkpoint& add(const std::string& name, const Generator& generator);
  Checkpoint& add(const std::string& name, bool& value);
  Checkpoint& add(const std::string& name, int64_t& value);
  Checkpoint& add(const std::string& name, double& value);
  Checkpoint& add(const std::string& name, std::string& value);
  Checkpoint& add(const std::string& name, std::vector<int64_t>& values);
  Checkpoint& add(const std::string& name, std::vector<double>& values);
  /// A setting of the run: loading a checkpoint that was saved with another text does not fit. With `changes` it does,
  /// and a line that names both texts is added there: for what may change when a run goes on, and not in silence.
  Checkpoint& expect(const std::string& name, std::string text, std::vector<std::string>* changes = nullptr);
  /// An optimiser, a schedule, or a DataLoader: where in its epoch it stands, see Note [The loader's position].
  template <optim::Stateful T>
  Checkpoint& add(const std::string& name, T& part);

  /// Throws IOError if the file cannot be written (the old one then is there still). A symbolic link is followed, as
  /// by torch.save: what it leads to is replaced.
  void save(const std::string& path) const;
  /// Throws IOError, in one line that starts with `path`, if the file cannot be read or is damaged, and ValueError if
  /// it does not fit the parts; the message lists all that is missing, unexpected or of a wrong shape. No part is
  /// changed then.
  void load(const std::string& path);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Part> part;
  };
  std::vector<optim::StateDict> read(const std::string& path, std::vector<std::string>& problems) const;

  std::vector<Named> parts_;
};

namespace detail {

template <class T>
class StatefulPart final : public Checkpoint::Part {
 public:
  explicit StatefulPart(T& part) : part_(part) {}
  optim::StateDict state() const override { return part_.state_dict(); }
  void load(const optim::StateDict& dict) override {
    before_ = part_.state_dict();
    part_.load_state_dict(dict);
  }
  void commit() override { before_.clear(); }
  void undo() override { part_.load_state_dict(before_); }

 private:
  T& part_;
  optim::StateDict before_;
};

}  // namespace detail

template <optim::Stateful T>
Checkpoint& Checkpoint::add(const std::string& name, T& part) {
  return add(name, std::make_unique<detail::StatefulPart<T>>(part));
}

}  // namespace rush
