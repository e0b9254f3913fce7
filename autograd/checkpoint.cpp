#include "autograd/checkpoint.h"

#include "autograd/compile/tracer.h"
#include "autograd/grad_mode.h"
#include "autograd/saved.h"
#include "autograd/saved_tensors_hooks.h"
#include "core/amp/autocast.h"
#include "core/device/generator.h"
#include "core/memory/claim.h"

namespace rush::autograd {

namespace {

// The states of the random generators that a function may draw from: the CPU's, and those of its inputs' devices.
class RandomStates {
 public:
  explicit RandomStates(const Tensors& tensors) {
    remember(kCPU);
    for (const Tensor& t : tensors) {
      if (t.defined() && t.device().is_accelerator()) remember(t.device());
    }
  }

  void restore() const {
    for (const auto& [generator, state] : states_) set(generator, state);
  }
  RandomStates now() const {
    RandomStates current(*this);
    for (auto& [generator, state] : current.states_) state = get(generator);
    return current;
  }

 private:
  void remember(Device device) {
    const Generator& generator = default_generator(device);
    states_.emplace_back(generator, get(generator));
  }
  static std::vector<uint8_t> get(const Generator& generator) {
    const std::lock_guard lock(generator.mutex());
    return generator.get_state();
  }
  static void set(Generator generator, const std::vector<uint8_t>& state) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }

  std::vector<std::pair<Generator, std::vector<uint8_t>>> states_;
};

class Frame;

// Stands for one tensor that the checkpointed function saved.
struct Slot {
  std::shared_ptr<Frame> frame;
  size_t number;
  DimVector sizes;
  ScalarType dtype;
  Tensor value;  // once recomputed
  int64_t version = 0;
};

class Frame : public std::enable_shared_from_this<Frame> {
 public:
  Frame(std::function<Tensors(const Tensors&)> fn, const Tensors& inputs, const CheckpointOptions& options)
      : fn_(std::move(fn)), inputs_(inputs), dispatch_state_(dispatch_state) {
    for (const Tensor& input : inputs) {
      requires_grad_.push_back(input.requires_grad());
      detail::claim_memory(input, MemoryUse::Activation);
    }
    if (options.preserve_rng_state) random_.emplace(inputs);
  }

  Tensors run_first(const Tensors& inputs) {
    const SavedTensorsHooks hooks([this](const Tensor& t) { return std::any(leave_out(t)); }, &Frame::recomputed);
    Tensors outputs = fn_(inputs);
    complete_ = true;
    return outputs;
  }

 private:
  std::shared_ptr<Slot> leave_out(const Tensor& t) {
    auto slot = std::make_shared<Slot>(
        Slot{shared_from_this(), slots_.size(), DimVector(t.sizes()), t.scalar_type(), Tensor()});
    slots_.push_back(slot);
    return slot;
  }

  static Tensor recomputed(const std::any& kept) {
    Slot& slot = *std::any_cast<const std::shared_ptr<Slot>&>(kept);
    if (!slot.value.defined()) slot.frame->run_again();
    RUSH_CHECK(slot.value.defined(), "checkpoint: the function saved fewer tensors when it ran again: number ",
               slot.number, " is missing");
    RUSH_CHECK(slot.value._version() == slot.version, "checkpoint: a saved tensor of sizes ", slot.sizes,
               " was modified in place by the function after it was saved");
    return slot.value;
  }

  void run_again() {
    const DispatchStateGuard restore_dispatch;
    dispatch_state = dispatch_state_;
    const autocast::CacheScope casts;
    // Random numbers that are drawn after the backward pass must not change.
    struct RestoreRandom {
      std::optional<RandomStates> states;
      ~RestoreRandom() {
        try {
          if (states) states->restore();
        } catch (const Error&) {
          // What refuses this state has refused the one below, and says so.
        }
      }
    } restore_random;
    if (random_) {
      restore_random.states = random_->now();
      random_->restore();
    }
    Tensors inputs = inputs_.get();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) continue;
      inputs[i] = inputs[i].detach();
      if (requires_grad_[i]) inputs[i].requires_grad_();
    }
    size_t next = 0;
    const SavedTensorsHooks hooks(
        [&](const Tensor& t) {
          fill(next++, t);
          return std::any(t);
        },
        [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); });
    fn_(inputs);
    RUSH_CHECK(!complete_ || next == slots_.size(), "checkpoint: the function saved ", slots_.size(),
               " tensors when it ran first, and ", next, " when it ran again");
  }

  void fill(size_t number, const Tensor& t) {
    if (number >= slots_.size()) return;
    const std::shared_ptr<Slot> slot = slots_[number].lock();
    if (!slot) return;  // its node is gone already
    RUSH_CHECK(t.sizes() == IntArrayRef(slot->sizes) && t.scalar_type() == slot->dtype, "checkpoint: tensor number ",
               number, " that the function saved was ", slot->dtype, " of sizes ", slot->sizes,
               " when it ran first, and is ", t.scalar_type(), " of sizes ", t.sizes(), " when it runs again");
    slot->value = t;
    slot->version = t._version();
  }

  std::function<Tensors(const Tensors&)> fn_;
  SavedList inputs_;
  std::vector<bool> requires_grad_;
  DispatchState dispatch_state_;
  std::optional<RandomStates> random_;
  std::vector<std::weak_ptr<Slot>> slots_;  // the graph owns them, and they own this
  bool complete_ = false;
};

}  // namespace

Tensors checkpoint(std::function<Tensors(const Tensors&)> fn, const Tensors& inputs, const CheckpointOptions& options) {
  RUSH_CHECK_VALUE(fn, "checkpoint: expected a callable, got an empty std::function");
  if (!GradMode::is_enabled()) return fn(inputs);
  // A graph would keep what is not to be kept, and the generators' states are set without operators.
  compiler::Tracer::end_before("it checkpoints activations");
  return std::make_shared<Frame>(std::move(fn), inputs, options)->run_first(inputs);
}

Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& input, const CheckpointOptions& options) {
  RUSH_CHECK_VALUE(fn, "checkpoint: expected a callable, got an empty std::function");
  const auto of_list = [fn = std::move(fn)](const Tensors& inputs) { return Tensors{fn(inputs[0])}; };
  return checkpoint(of_list, Tensors{input}, options)[0];
}

}  // namespace rush::autograd
