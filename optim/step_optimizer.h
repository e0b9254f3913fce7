// DescribedOptimizer: an optimiser from a description, see Note [An optimiser from a description].
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/ops/optim/optim.h"
#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

// ---- options

/// Two options of most optimisers. maximize: ascend instead. capturable: see Note [Capturable optimisers]; it is not
/// part of a state dict.
#define RUSH_MAXIMIZE_AND_CAPTURABLE \
  RUSH_ARG(bool, maximize) = false;  \
  RUSH_ARG(bool, capturable) = false

/// Which numbers an option may be.
enum class Range { NotNegative, Any };

/// What a list of options is given to. Each takes the options one by one, with their names.
class OptionChecks {
 public:
  explicit OptionChecks(const char* optimizer) : optimizer_(optimizer) {}
  void operator()(const char* name, double value, Range range = Range::NotNegative) const;
  /// Two betas, each in [0, 1).
  void operator()(const char* name, const std::tuple<double, double>& value, Range = Range::NotNegative) const;
  void operator()(const char*, bool) const {}
  void operator()(const char* name, int64_t value) const { (*this)(name, static_cast<double>(value)); }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value, Range range = Range::NotNegative) const {
    if (value) (*this)(name, *value, range);
  }
  void operator()(const char*, const std::vector<double>&) const {}

 private:
  const char* optimizer_;
};

/// Collects numbers and flags, each in their order. Numbers that are not given are NaN.
struct OptionNumbers {
  static constexpr size_t kMost = 12;
  std::array<double, kMost> numbers{}, flags{};
  size_t num_numbers = 0, num_flags = 0;
  /// A bool is a flag, everything else one number or more: a tuple two, a vector one for each element.
  void operator()(const char*, double value, Range = Range::NotNegative);
  void operator()(const char* name, const std::tuple<double, double>& value, Range = Range::NotNegative);
  void operator()(const char*, bool value);
  void operator()(const char* name, int64_t value) { (*this)(name, static_cast<double>(value)); }
  void operator()(const char* name, const std::optional<double>& value, Range = Range::NotNegative);
  void operator()(const char* name, const std::vector<double>& values);
  /// A flag of the rule that is no option.
  void flag(bool value) { (*this)("", value); }
};

/// Names options for a state dict.
struct OptionFields {
  StateFields& fields;
  void operator()(const char* name, auto& value, Range = Range::NotNegative) const {  // a vector keeps its length
    if constexpr (requires { value.begin(); }) {
      fields.fixed(name, value);
    } else {
      fields(name, value);
    }
  }
};

/// Options that `Derived` names once, in a static function template `describe(options, visit)`, in the order of its
/// Step struct: visit("lr", options.lr()). Derived::kName is the optimiser's name, for errors.
template <class Derived>
class DescribedOptions : public OptimizerCloneableOptions<Derived> {
 public:
  void check() const override { Derived::describe(self(), OptionChecks(Derived::kName)); }
  double get_lr() const override { return self().lr(); }
  void set_lr(double value) override { self().lr(value); }
  std::optional<double> get_momentum() const override {
    if constexpr (requires { self().betas(); }) return std::get<0>(self().betas());
    if constexpr (requires { self().momentum(); }) return self().momentum();
    return std::nullopt;
  }
  void set_momentum(double value) override {
    if constexpr (requires { self().betas(); }) {
      std::get<0>(self().betas()) = value;
    } else if constexpr (requires { self().momentum(); }) {
      self().momentum(value);
    }
  }
  bool get_capturable() const override {
    if constexpr (requires { self().capturable(); }) return self().capturable();
    return false;
  }
  std::vector<double> device_numbers() const override {
    OptionNumbers all;
    Derived::describe(self(), all);
    return {all.numbers.begin(), all.numbers.begin() + all.num_numbers};
  }
  void visit(StateFields& fields) override { Derived::describe(self(), OptionFields{fields}); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

// ---- states

/// A tensor of a state, and its name in a state dict; null where the state has fewer.
struct StateTensor {
  const char* name = nullptr;
  Tensor* tensor = nullptr;
};
using StateTensors = std::array<StateTensor, 3>;

/// What the states of these optimisers share: they count steps. `step()` counts on the host, and `step_counter()`,
/// which only capturable optimisers define, on the device instead; so do NAdam's `mu_product()` and
/// `mu_product_counter()`.
class StepParamState : public OptimizerParamState {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, step_counter);

 public:
  /// The product of the momenta of all steps so far, on the host and on the device. Null where there is none.
  struct MuProduct {
    double* on_host = nullptr;
    Tensor* counter = nullptr;
  };

  /// What a step updates beside the parameter, in the rule's order.
  virtual StateTensors tensors() = 0;
  virtual MuProduct mu_product_slots() { return {}; }  // NAdam's
  /// Whether step() counts.
  static constexpr bool kCounts = true;

  /// Whether the state counts where a step does.
  bool counts_there(bool capturable);
  /// Moves the numbers there. Those that come back from the device are waited for.
  virtual void count_there(const Tensor& param, bool capturable);
  /// For a state dict: the numbers as the device has counted them. Waits for the device.
  void read_counters();
};

template <class Derived>
class DescribedParamState : public StepParamState {  // clone() copies Derived
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

// ---- steps

/// What a step does with the parameters of one group.
struct StepDescription {
  const char* name = nullptr;  // the optimiser's, for errors
  const ops::StepOp* op = nullptr;
  std::array<double, OptionNumbers::kMost> options{};
  size_t num_options = 0;
  bool ends_with_first = false;  // the last option says that the states have just been made
  bool composed = false;         // see Note [Composed steps]
  bool counts = true;            // steps, on the host
  std::array<bool, 3> uses{};    // which states the options need
  double (*momentum_at)(ArrayRef<double> options, int64_t step) = nullptr;  // NAdam's
  std::array<double, 3> initial{};                                          // what states are filled with
  /// A tensor of the sizes of a state of `param`, undefined where that parameter has no such state. Null where states
  /// have the parameter's sizes.
  Tensor (*like)(size_t state, const Tensor& param) = nullptr;
  const std::type_info* state_type = nullptr;
  std::unique_ptr<OptimizerParamState> (*make_state)() = nullptr;
};

/// The optimisers whose step is an operator of Note [Steps as operators].
class StepOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  virtual StepDescription describe(const OptimizerOptions& options) const = 0;
  /// Takes in the parameters of a group that have a gradient, sparse ones too where the optimiser takes them.
  virtual void gather(size_t group, StepLists& lists) const;
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

/// An optimiser by its description. One that most programs use is compiled in the library, once: its header names these
/// parts by RUSH_OPTIMIZER_PARTS(extern, ...), and a source by RUSH_OPTIMIZER_PARTS(, ...).
template <class Options, class ParamState, class Step = void>
class DescribedOptimizer : public StepOptimizer {
 public:
  DescribedOptimizer(const std::vector<OptimizerParamGroup>& param_groups, Options defaults = {})
      : StepOptimizer(param_groups, std::make_unique<Options>(std::move(defaults))) {}
  DescribedOptimizer(std::vector<Tensor> params, Options defaults = {})
      : DescribedOptimizer(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
                           std::move(defaults)) {}

 protected:
  StepDescription describe(const OptimizerOptions& options) const override {
    const auto& given = static_cast<const Options&>(options);
    StepDescription d;
    d.name = Options::kName;
    d.counts = ParamState::kCounts;
    d.state_type = &typeid(ParamState);
    d.make_state = [] { return std::unique_ptr<OptimizerParamState>(std::make_unique<ParamState>()); };
    for (size_t i = 0; i < d.initial.size(); ++i) {
      if constexpr (requires { given.initial(i); }) d.initial[i] = given.initial(i);
    }
    if constexpr (std::is_void_v<Step>) {
      d.uses.fill(true);
    } else {
      describe_step(d, given);
    }
    return d;
  }

 private:
  static void describe_step(StepDescription& d, const Options& options) {
    static_assert(Step::kNumbers + Step::kFlags <= OptionNumbers::kMost);
    OptionNumbers all;
    Options::describe(options, all);
    d.ends_with_first = requires { &Step::first; };
    RUSH_CHECK(all.num_numbers == Step::kNumbers && all.num_flags + d.ends_with_first == Step::kFlags, d.name,
               ": its options and its rule do not have the same numbers");
    d.num_options = Step::kNumbers + Step::kFlags;
    std::copy_n(all.numbers.begin(), Step::kNumbers, d.options.begin());
    std::copy_n(all.flags.begin(), Step::kFlags, d.options.begin() + Step::kNumbers);
    d.op = &ops::step<Step>;
    d.composed = requires { &Step::compose; };
    const auto step = step_from<Step>({d.options.data(), d.num_options});
    for (size_t i = 0; i < d.uses.size(); ++i) d.uses[i] = uses_state(step, i);
    if constexpr (requires { &Options::momentum_at; }) d.momentum_at = &Options::momentum_at;
    if constexpr (requires { &Step::like; }) d.like = &Step::like;
  }
};

#define RUSH_OPTIMIZER_PARTS(linkage, Options, ParamState, Step) \
  linkage template class OptimizerCloneableOptions<Options>;     \
  linkage template class DescribedOptions<Options>;              \
  linkage template class DescribedOptimizer<Options, ParamState, Step>

}  // namespace rush::optim
