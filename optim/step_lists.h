// StepLists: parameters, gradients and state gathered for the operators of core/ops/optim/optim.h.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/ops/index/index_select.h"
#include "core/ops/write_back.h"
#include "core/tensor.h"
#include "optim/graphs/device_numbers.h"
#include "optim/step_optimizer.h"

namespace rush::optim {

// Note [All of a step or nothing of it]
// A step that throws changes neither a parameter nor a state, so that it can be repeated. It has two halves. The first
// looks at everything and takes all memory: `gather`, for every group, checks gradients and states against their
// parameters, and makes what is missing apart from the optimiser's own state. The second, `run`, takes the steps: from
// its first write on nothing is allocated, so nothing is left that could fail but the device itself. In the end the
// states that were made become the optimiser's, and the numbers that it keeps on the host are written.

// Note [Composed steps]
// A step that is made of calls to tensor operators takes memory while it runs. So it runs in the first half, on copies
// of the parameters and of their states: the copied states become the optimiser's, and the parameters are
// written back. The states of such a step may have other sizes than their parameters.
class StepLists {
 public:
  /// The kernels take lists of tensors that agree in group, device and dtype, and in layout with their parameter.
  /// Tensors that do not are replaced by copies that do, and such parameters are written back in the end.
  struct Batch {
    size_t group;
    bool first;                 // the states have just been made
    std::array<bool, 3> keeps;  // which states there are
    StepDescription step;
    std::vector<Tensor> params, grads;
    std::array<std::vector<Tensor>, 3> states;
    std::vector<int64_t> steps;                          // how many a parameter has taken, this one included
    std::vector<double> mu_products;                     // NAdam's, likewise
    std::vector<Tensor> step_counters;                   // on the device, of capturable optimisers
    std::vector<Tensor> mu_product_counters;             // likewise
    std::optional<Tensor> numbers, found_inf, functors;  // of capturable optimisers
  };

  /// A parameter, by the number of its group and its own there.
  struct Place {
    size_t group, index;
  };
  struct SparseEntry {
    Tensor param;
    Place place;
    Tensor target;  // what is written: the parameter, or a row-major copy of it
    Tensor grad;    // COO
  };

  /// `name` is the optimiser's, for errors.
  StepLists(const char* name, Optimizer& optimizer) : name_(name), optimizer_(optimizer) {}

  /// Takes in the parameters of a group that have a gradient; states that are missing are made. Throws ValueError or
  /// TypeError, naming the parameter, where a gradient or a state does not fit.
  void gather(size_t group, const StepDescription& step);
  /// The parameters of a group with a sparse gradient, which `gather` leaves out after `sparse_apart`: calls
  /// each(entry) for those. Throws as `gather` does.
  void sparse_apart() { sparse_apart_ = true; }
  template <class Each>
  void gather_sparse(size_t group, const Each& each);
  /// The state of such a parameter.
  StepParamState& state_for(const SparseEntry& entry, const StepDescription& step) {
    return *state_for(entry.param, entry.target, entry.place, step, false).state;
  }
  /// A copy of the parameter's state, which takes its place when the step is taken.
  template <class ParamState>
  ParamState& copy_of_state(const Tensor& param, Place place) {
    const auto make = [] { return std::unique_ptr<OptimizerParamState>(std::make_unique<ParamState>()); };
    return static_cast<ParamState&>(copy_of_state(param, place, typeid(ParamState), make));
  }

  /// As the steps are taken, rows of a table become `values`, or `values` are added; on a GPU they must be distinct.
  void assign_later(const Tensor& table, const Tensor& rows, const Tensor& values);
  void add_later(const Tensor& table, const Tensor& rows, const Tensor& values);
  /// As above, `number` becomes `next`.
  void assign_later(int64_t& number, int64_t next) { counts_.emplace_back(&number, next); }
  void assign_later(double& number, double next) { products_.emplace_back(&number, next); }

  /// Takes the step of every batch, by its operator, and does what was to be done later.
  void run();

 private:
  // A parameter and its gradient, dense and with the same strides.
  struct Entry {
    Tensor param, grad;
  };
  struct Found {
    StepParamState* state = nullptr;  // null where these options need none
    bool first = false;               // a tensor was missing
  };

  // Whether there is anything to do. Throws ValueError for an undefined parameter: `params()` is open to changes.
  bool has_gradient(const Tensor& param, Place place) const;
  void check(const Tensor& param, Place place) const;
  Entry entry_for(const Tensor& param, Place place, const StepDescription& step);
  SparseEntry sparse_entry_for(const Tensor& param, Place place);
  template <class Each>
  static void for_each_tensor(StepParamState& state, const StepDescription& step, const Tensor& param,
                              const Each& each);
  // Throws ValueError unless the tensors of a state whose sizes are not the parameter's go with `param`.
  void check_state_shapes(StepParamState& state, const StepDescription& step, const Tensor& param, Place place) const;
  // Whether all tensors of the state are defined and have the strides of `like`. Throws if one does not fit.
  bool are_ready(StepParamState& state, const StepDescription& step, const Tensor& like, Place place) const;
  // Makes them so, or copies of a composed step's; returns whether one was missing.
  static bool make_ready(StepParamState& state, const StepDescription& step, const Tensor& like);
  void check_counter(const Tensor& counter, ScalarType dtype, const Tensor& param, Place place) const;
  Batch& batch_for(const Tensor& param, size_t group, const StepDescription& step, bool first,
                   const std::array<bool, 3>& keeps);
  Batch& add(const Entry& entry, const Found& found, size_t group, const StepDescription& step);
  // What the optimiser keeps of a parameter; null where there is nothing. Throws TypeError for another type.
  OptimizerParamState* known_state(const Tensor& param, Place place, const std::type_info& type) const;
  OptimizerParamState& copy_of_state(const Tensor& param, Place place, const std::type_info& type,
                                     std::unique_ptr<OptimizerParamState> (*make)());
  // The parameter's state with all that the step needs: the optimiser's own, or one that takes its place in the end.
  Found state_for(const Tensor& param, const Tensor& like, Place place, const StepDescription& step, bool capturable);
  void take(Batch& batch);
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
