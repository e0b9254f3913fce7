// Optimizer: the base of the optimisers: groups of parameters with their options, and a state for each parameter.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "optim/archived.h"
#include "optim/state/state_dict.h"

namespace rush::optim {

class DeviceNumbers;
class StepLists;

/// What an optimiser remembers of a parameter from step to step.
class OptimizerParamState : public Archived<OptimizerParamState> {
 public:
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;  // its tensors are shared
};

template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {  // clone() copies Derived
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::unique_ptr<OptimizerParamState>(new Derived(static_cast<const Derived&>(*this)));
  }
};

/// The numbers that a group is trained with. Schedulers reach them without knowing the optimiser.
class OptimizerOptions : public Archived<OptimizerOptions> {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;  // its numbers are copied
  /// Throws ValueError on a number outside its range. A program's own options may leave it out.
  virtual void check() const {}
  /// The learning rate, which schedules read and set. A program's own options may leave both out.
  virtual double get_lr() const { RUSH_THROW(NotImplementedError, "optimizer: these options have no learning rate"); }
  virtual void set_lr(double) { RUSH_THROW(NotImplementedError, "optimizer: these options have no learning rate"); }
  /// SGD's momentum, Adam's beta1; nothing where there is neither.
  virtual std::optional<double> get_momentum() const { return std::nullopt; }
  virtual void set_momentum(double) {}
  /// Whether a step can be captured in a CUDA graph: Note [Capturable optimisers].
  virtual bool get_capturable() const { return false; }
  /// The numbers that such a step reads from device memory, in its kernel's order.
  virtual std::vector<double> device_numbers() const { return {}; }
  /// Names the options for a state dict, see Note [State dicts].
  virtual void visit(StateFields& fields);
};

/// Each throws ValueError, naming the optimiser and the option, unless the number is in its range. NaN never is.
void check_not_negative(const char* optimizer, const char* option, double value);
void check_betas(const char* optimizer, const std::tuple<double, double>& betas);

template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {  // clone() copies Derived
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
};

/// Parameters that share options; without options of its own, a group takes the optimiser's.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_),
        options_(other.options_ ? other.options_->clone() : nullptr),
        initial_lr_(other.initial_lr_) {}
  OptimizerParamGroup(OptimizerParamGroup&&) noexcept = default;
  OptimizerParamGroup& operator=(const OptimizerParamGroup&) = delete;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) noexcept = default;
  ~OptimizerParamGroup() = default;

  bool has_options() const { return static_cast<bool>(options_); }  // else options() throws
  /// Throws Error when there are none.
  OptimizerOptions& options() { return const_cast<OptimizerOptions&>(std::as_const(*this).options()); }
  const OptimizerOptions& options() const {
    RUSH_CHECK(options_, "optimizer: the parameter group has no options yet");
    return *options_;
  }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }  // the handles that were given
  const std::vector<Tensor>& params() const { return params_; }
  /// The learning rate that schedules start from: the group's when its first scheduler was made.
  std::optional<double>& initial_lr() { return initial_lr_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
  std::optional<double> initial_lr_;
};

namespace detail {
// As Optimizer::zero_grad.
void zero_grads(const std::vector<Tensor>& params, bool set_to_none);
}  // namespace detail

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using State = std::unordered_map<const TensorImpl*, std::unique_ptr<OptimizerParamState>>;

  /// Throws ValueError when no group has a parameter, and as add_param_group.
  Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)  // in one group
      : Optimizer(std::vector<OptimizerParamGroup>{std::move(parameters)}, std::move(defaults)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&& other) noexcept;
  Optimizer& operator=(Optimizer&& other) noexcept;
  virtual ~Optimizer();

  /// Updates every parameter that has a gradient. A closure computes the loss and its gradients again; its result is
  /// returned, otherwise an undefined tensor. Throws ValueError or TypeError, naming the parameter, where a gradient or
  /// a state has not its shape, dtype or device; only a gradient's floating dtype is converted. A step that throws has
  /// changed nothing: Note [All of a step or nothing of it].
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  /// Drops all gradients, or fills them with zero.
  void zero_grad(bool set_to_none = true) { detail::zero_grads(parameters(), set_to_none); }

  /// Whether a step can leave it to the device to skip it: all groups are capturable.
  bool step_supports_amp_scaling() const;
  /// While `found_inf`, a float32, is defined, steps change nothing where it is not 0. For such optimisers;
  /// amp::GradScaler sets it around its step.
  void set_found_inf(Tensor found_inf) { found_inf_ = std::move(found_inf); }

  /// Whether step() was called, or amp::GradScaler called skip_step() instead: schedules are to be stepped afterwards.
  bool was_stepped() const noexcept { return was_stepped_; }
  void skip_step() noexcept { was_stepped_ = true; }

  /// Throws ValueError when a tensor of the group is no leaf, or stands in the group twice or in another group.
  void add_param_group(const OptimizerParamGroup& param_group);
  /// The parameters of all groups.
  std::vector<Tensor> parameters() const;
  /// All groups; the options of groups without their own; and the states, by parameter.
  std::vector<OptimizerParamGroup>& param_groups() noexcept { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return param_groups_; }
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  const OptimizerOptions& defaults() const noexcept { return *defaults_; }
  State& state() noexcept { return state_; }
  const State& state() const noexcept { return state_; }

  /// The state of every parameter, numbered by its place among all groups' as PyTorch does, and the options of every
  /// group, see Note [State dicts]. The state's tensors are the optimiser's own: clone them to keep them over a step.
  StateDict state_dict() const;
  /// Takes copies of all that `dict` holds. Throws ValueError, and changes nothing, unless `dict` has exactly the names
  /// and shapes that state_dict() of an optimiser of this kind with the same groups has; the message lists all that are
  /// missing, unexpected or of a wrong shape.
  void load_state_dict(const StateDict& dict);
  /// The state dict in an archive, and back: nn/state/archive.h. `load` throws as load_state_dict, except for what
  /// else the archive holds: a module, say.
  virtual void save(serialize::OutputArchive& archive) const;
  void load(const serialize::InputArchive& archive);
  virtual void load(serialize::InputArchive& archive) { load(std::as_const(archive)); }

 protected:
  // The closure's result, with recording on; undefined without a closure. Every step begins with it.
  // Throws ValueError when a group's learning rate is NaN, and Error when a graph is being captured and a group is not
  // capturable.
  Tensor evaluate(const LossClosure& closure);
  // Names what is remembered of `param`, and makes it first if `slot` is empty.
  virtual void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                           const OptimizerOptions& options) const;
  // What `slot` holds, made if it is empty.
  template <class ParamState>
  static ParamState& state_in(std::unique_ptr<OptimizerParamState>& slot) {
    if (!slot) slot = std::make_unique<ParamState>();
    return static_cast<ParamState&>(*slot);
  }

  // The numbers of a capturable group on `device`.
  const Tensor& numbers_on_device(size_t group, Device device);
  // While a graph is captured: it will bring the numbers up to date before it takes the step on `params` again.
  void note_captured_step(TensorList params, std::initializer_list<TensorList> states);
  // What set_found_inf was given, on `device`; undefined where there is none.
  Tensor found_inf_on(Device device) const;

  std::vector<OptimizerParamGroup> param_groups_;
  State state_;
  std::unique_ptr<OptimizerOptions> defaults_;

 private:
  friend class StepLists;
  void visit(StateFields& fields, std::vector<OptimizerParamGroup>& groups, State& state) const;

  std::shared_ptr<DeviceNumbers> device_numbers_;  // null until a capturable step
  Tensor found_inf_;
  bool was_stepped_ = false;
};

}  // namespace rush::optim
