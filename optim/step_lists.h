// StepLists: parameters, gradients and state gathered for the operators of core/ops/optim/optim.h.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/ops/index/index_select.h"
#include "core/ops/optim/optim.h"
#include "core/ops/write_back.h"
#include "core/tensor.h"
#include "optim/graphs/device_numbers.h"
#include "optim/optimizer.h"

namespace rush::optim {

// Options as StepOp takes them.
template <class... Options>
std::array<double, sizeof...(Options)> step_options(Options... options) {
  return {static_cast<double>(options)...};
}

// Note [All of a step or nothing of it]
// A step that throws changes neither a parameter nor a state, so that it can be repeated. It has two halves. The first
// looks at everything and takes all memory: `gather`, for every group, checks gradients and states against their
// parameters, and makes what is missing apart from the optimiser's own state. The second, `run`, takes the steps: from
// its first write on nothing is allocated, so nothing is left that could fail but the device itself. In the end the
// states that were made become the optimiser's, and the numbers that it keeps on the host are written.
class StepLists {
 public:
  static constexpr size_t kMostStates = 3;

  // What a step updates beside the parameter: a member of its state, by name.
  struct StateTensor {
    const char* name = nullptr;
    Tensor* tensor = nullptr;  // null where these options use none
  };
  using StateTensors = std::array<StateTensor, kMostStates>;

  // The kernels take lists of tensors that agree in group, device and dtype, and in layout with their parameter.
  // Tensors that do not are replaced by copies that do, and such parameters are written back in the end.
  struct Batch {
    size_t group;
    bool first;  // the states have just been made
    std::vector<Tensor> params, grads;
    std::array<std::vector<Tensor>, kMostStates> states;
    std::vector<int64_t> steps;                          // how many a parameter has taken, this one included
    std::vector<double> mu_products;                     // NAdam's, likewise
    std::vector<Tensor> step_counters;                   // on the device, of capturable optimisers
    std::vector<Tensor> mu_product_counters;             // likewise
    std::optional<Tensor> numbers, found_inf, functors;  // of capturable optimisers
  };

  // A parameter, by the number of its group and its own there.
  struct Place {
    size_t group, index;
  };
  struct SparseEntry {
    Tensor param;
    Place place;
    Tensor target;  // what is written: the parameter, or a row-major copy of it
    Tensor grad;    // COO
  };

  // `name` is the optimiser's, for errors.
  StepLists(const char* name, Optimizer& optimizer) : name_(name), optimizer_(optimizer) {}

  // Takes in the parameters of a group that have a gradient. `tensors_of(state)` names what the step updates, in the
  // kernel's order; what is missing is made, filled with `initial`. `each(batch, state)` is called when a parameter has
  // joined its batch. Throws ValueError or TypeError, naming the parameter, where a gradient or a state does not fit.
  template <class ParamState, class TensorsOf, class Each>
  void gather(size_t group, const TensorsOf& tensors_of, double initial, const Each& each);
  template <class ParamState, class TensorsOf>
  void gather(size_t group, const TensorsOf& tensors_of, double initial = 0) {
    gather<ParamState>(group, tensors_of, initial, [](Batch&, ParamState&) {});
  }
  // The parameters of a group with a sparse gradient, which `gather` leaves out after `sparse_apart`: calls each(entry)
  // for those. Throws as `gather` does.
  void sparse_apart() { sparse_apart_ = true; }
  template <class Each>
  void gather_sparse(size_t group, const Each& each);
  // The state of such a parameter.
  template <class ParamState, class TensorsOf>
  ParamState& state_for(const SparseEntry& entry, const TensorsOf& tensors_of) {
    return state_for<ParamState>(entry.param, entry.target, entry.place, tensors_of, 0, false).state;
  }
  // A copy of the parameter's state, which takes its place when the step is taken.
  template <class ParamState>
  ParamState& copy_of_state(const Tensor& param, Place place);

  // When the steps are taken, rows of a table become `values`, or `values` are added to them; on a GPU they must be
  // distinct rows.
  void assign_later(const Tensor& table, const Tensor& rows, const Tensor& values);
  void add_later(const Tensor& table, const Tensor& rows, const Tensor& values);
  // Likewise, `number` becomes `next`.
  void assign_later(int64_t& number, int64_t next) { counts_.emplace_back(&number, next); }
  void assign_later(double& number, double next) { products_.emplace_back(&number, next); }

  // Takes the step of every batch, by an operator of Note [Steps as operators]. `options_of(batch)` is a list of
  // numbers.
  template <class OptionsOf>
  void run(const ops::StepOp& step, const OptionsOf& options_of) {
    prepare();
    for (const Batch& batch : batches_) {
      const auto& [states0, states1, states2] = batch.states;
      const auto options = options_of(batch);
      step(batch.params, batch.grads, states0, states1, states2, batch.steps, batch.mu_products,
           {options.data(), options.size()}, batch.step_counters, batch.mu_product_counters, batch.numbers,
           batch.found_inf, batch.functors);
    }
    finish();
  }
  // Where there is only what was to be assigned or added later.
  void run() {
    prepare();
    finish();
  }

 private:
  // A parameter and its gradient, dense and laid out alike.
  struct Entry {
    Tensor param, grad;
  };
  template <class ParamState>
  struct Found {
    ParamState& state;
    bool first;  // a tensor was missing
  };

  // Whether there is anything to do. Throws ValueError for an undefined parameter: `params()` is open to changes.
  bool has_gradient(const Tensor& param, Place place) const;
  void check(const Tensor& param, Place place) const;
  Entry entry_for(const Tensor& param, Place place);
  SparseEntry sparse_entry_for(const Tensor& param, Place place);
  // Whether all `tensors` are there and laid out as `like`. Throws where one does not fit.
  bool are_ready(const StateTensors& tensors, const Tensor& like, Place place) const;
  // Makes them so; returns whether one was missing.
  static bool make_ready(const StateTensors& tensors, const Tensor& like, double initial);
  void check_counter(const Tensor& counter, ScalarType dtype, const Tensor& param, Place place) const;
  [[noreturn]] void throw_other_state(Place place) const;
  void check_is_new(const Tensor& param, Place place) const;
  Batch& batch_for(const Tensor& param, size_t group, bool first);
  Batch& add(const Entry& entry, const StateTensors& tensors, size_t group, bool first);
  // What the optimiser keeps of a parameter; null where there is nothing.
  OptimizerParamState* known_state(const Tensor& param) const;
  template <class ParamState>
  ParamState* known_state(const Tensor& param, Place place) const;
  // The parameter's state with all that the step needs: the optimiser's own, or one that takes its place in the end.
  template <class ParamState, class TensorsOf>
  Found<ParamState> state_for(const Tensor& param, const Tensor& like, Place place, const TensorsOf& tensors_of,
                              double initial, bool capturable);
  void prepare();
  void finish();

  const char* name_;
  Optimizer& optimizer_;
  bool sparse_apart_ = false;
  std::vector<Batch> batches_;
  std::vector<native::SliceWrite> writes_;
  native::WriteBack copies_;
  Optimizer::State made_;
  std::vector<std::pair<int64_t*, int64_t>> counts_;
  std::vector<std::pair<double*, double>> products_;
};

template <class ParamState, class TensorsOf>
StepLists::Found<ParamState> StepLists::state_for(const Tensor& param, const Tensor& like, Place place,
                                                  const TensorsOf& tensors_of, double initial, bool capturable) {
  ParamState* known = known_state<ParamState>(param, place);
  if (known && are_ready(tensors_of(*known), like, place) && counts_there(*known, capturable)) return {*known, false};
  ParamState& copy = copy_of_state<ParamState>(param, place);
  count_there(copy, param, capturable);
  const bool first = make_ready(tensors_of(copy), like, initial);
  return {copy, first};
}

template <class ParamState>
ParamState* StepLists::known_state(const Tensor& param, Place place) const {
  OptimizerParamState* known = known_state(param);
  if (known && typeid(*known) != typeid(ParamState)) throw_other_state(place);
  return static_cast<ParamState*>(known);
}

template <class ParamState>
ParamState& StepLists::copy_of_state(const Tensor& param, Place place) {
  const ParamState* known = known_state<ParamState>(param, place);
  check_is_new(param, place);
  auto copy = known ? std::make_unique<ParamState>(*known) : std::make_unique<ParamState>();
  return static_cast<ParamState&>(*(made_[param.impl()] = std::move(copy)));
}

template <class ParamState, class TensorsOf, class Each>
void StepLists::gather(size_t group, const TensorsOf& tensors_of, double initial, const Each& each) {
  constexpr bool counts = requires(ParamState & state) { state.step(); };
  const std::vector<Tensor>& params = optimizer_.param_groups()[group].params();
  const bool capturable = optimizer_.param_groups()[group].options().get_capturable();
  ParamState nothing;  // the state that is kept with options that need none
  const bool keeps_state = counts || capturable || tensors_of(nothing)[0].tensor;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    const Place place{group, i};
    if (!has_gradient(param, place) || (sparse_apart_ && param.grad().layout() != kStrided)) continue;
    const Entry entry = entry_for(param, place);
    const Found<ParamState> found =
        keeps_state ? state_for<ParamState>(param, entry.param, place, tensors_of, initial, capturable)
                    : Found<ParamState>{nothing, false};
    Batch& batch = add(entry, tensors_of(found.state), group, found.first);
    if (capturable) {
      check_counter(found.state.step_counter(), kInt64, param, place);
      batch.step_counters.push_back(found.state.step_counter());
    } else if constexpr (counts) {
      batch.steps.push_back(found.state.step() + 1);
      assign_later(found.state.step(), batch.steps.back());
    }
    each(batch, found.state);
  }
}

template <class Each>
void StepLists::gather_sparse(size_t group, const Each& each) {
  const std::vector<Tensor>& params = optimizer_.param_groups()[group].params();
  for (size_t i = 0; i < params.size(); ++i) {
    const Place place{group, i};
    if (!has_gradient(params[i], place) || params[i].grad().layout() == kStrided) continue;
    each(sparse_entry_for(params[i], place));
  }
}

}  // namespace rush::optim
