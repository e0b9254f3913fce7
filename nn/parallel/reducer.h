// Reducer: the means of parameters' gradients over processes, computed while the backward pass goes on.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "nn/arg.h"
#include "nn/module.h"
#include "nn/parallel/comm_hooks.h"

namespace rush::nn::parallel {

// Note [Gradient buckets]
// Gradients lie in buckets, tensors of a few megabytes, of which those of parameters are views, so that a collective of
// one bucket serves many parameters. A hook on a parameter's accumulator runs when its gradient has been added up. When
// all gradients of a bucket are there the bucket's all_reduce begins, and the backward pass goes on meanwhile; its last
// gradient waits for all buckets. Every process begins its buckets in the same order, as collectives ask for.
//
// Parameters fill the buckets in reverse order, since the last module's gradients come first. After the first backward
// pass the buckets are made again, in the order in which gradients came on rank 0. The first one is small, so that the
// processes begin early to exchange something.

// Note [Accumulators in time]
// The engine takes the node of the highest number next, and accumulators have the number 0: they all run at the end of
// the pass, when nothing is left to compute while buckets travel. So after each forward pass the reducer goes through
// the graph, and gives each accumulator a number below the least of the nodes that lead to it: it runs after the last
// of them, at most one node later. An accumulator that an earlier graph waits for as well keeps its number if that is
// lower. On its way the reducer learns which parameters the outputs do not depend on.

/// The keyword arguments of torch.nn.parallel.DistributedDataParallel.
struct DistributedDataParallelOptions {
  /// The processes that train together; null: all.
  RUSH_ARG(distributed::Group, process_group);
  /// The size of a bucket, in MiB: Note [Gradient buckets].
  RUSH_ARG(double, bucket_cap_mb) = 25;
  /// Whether each forward pass in training begins with the buffers of the first process.
  RUSH_ARG(bool, broadcast_buffers) = true;
  /// Whether the output need not depend on every parameter. One that no process has used keeps its gradient.
  RUSH_ARG(bool, find_unused_parameters) = false;
  /// Whether the output depends on the same parameters in each forward pass of this process. It may leave some out, as
  /// with find_unused_parameters, but processes tell each other in the first backward pass alone which those are.
  RUSH_ARG(bool, static_graph) = false;
};

/// Of the parameters of one module, on one process of a group. Every process of the group has one for the same
/// parameters. c10d::Reducer.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  /// Of those that require gradients. Throws DistributedError on every process where they differ between processes in
  /// number, shape or dtype, and ValueError for a bucket_cap_mb that is not above 0 and at most 2^20.
  Reducer(const Module& module, distributed::Group group, const DistributedDataParallelOptions& options);
  /// Watches the accumulators from now on.
  void watch();

  /// Before and after a forward pass. `outputs` are what the backward pass begins at. The second throws Error where
  /// they do not depend on a parameter, unless the options allow for that, and where a static graph has changed; the
  /// first, where the last backward pass has not come to all parameters.
  void begin_forward();
  void end_forward(TensorList outputs);

  /// `announce` is called before the first collective of a backward pass, and returns by what the means over all
  /// processes are multiplied.
  void set_announcement(std::function<double()> announce) { announce_ = std::move(announce); }
  /// Calls the collectives of the other processes' backward pass; this one's gradients count as zeros, and each `grad`
  /// becomes the mean.
  void shadow_backward(double mean_factor);

  /// Without, gradients are only added up on this process.
  void set_synchronizes(bool on) { synchronizes_ = on; }
  bool synchronizes() const { return synchronizes_; }  // at first

  /// In place of an all_reduce in the gradients' own dtype. The same on every process.
  void set_comm_hook(CommHook hook) { comm_hook_ = std::move(hook); }

  size_t num_buckets() const { return buckets_.size(); }  // of all parameters

 private:
  struct Bucket {
    std::vector<size_t> parameters;  // by number
    std::vector<Tensor> views;       // of each of them
    Tensor flat;                     // all views; its length is a multiple of the number of processes
    size_t missing = 0;              // gradients that have not come
    distributed::WorkPtr work;
  };
  struct Parameter {
    std::string name;
    Tensor tensor;
    intrusive_ptr<Node> accumulator;
    size_t bucket = 0, place = 0;  // of its view
    bool is_held = false;          // by a graph whose backward pass has not been, when the forward pass began
    bool has_arrived = false, is_unused = false;
  };
  class ArrivalHook;

  bool may_leave_out() const { return options_.find_unused_parameters() || options_.static_graph(); }  // parameters
  void make_buckets(const std::vector<size_t>& order);
  void add_bucket(std::vector<size_t> parameters);
  Tensor& view_of(const Parameter& parameter) { return buckets_[parameter.bucket].views[parameter.place]; }
  // The least number of the nodes that lead to each accumulator; 0 where there is none.
  std::vector<uint64_t> least_consumers(TensorList outputs) const;
  void schedule(TensorList outputs);
  void begin_backward();
  void check_used() const;
  void check_static();

  void arrive(size_t number);
  void move_to_bucket(Parameter& parameter);
  void launch_full_buckets();
  void finish();
  // Which parameters any process has used.
  std::vector<bool> used_anywhere() const;
  void make_buckets_in_order_of_arrival();

  std::vector<Parameter> parameters_;
  const distributed::Group group_;
  const DistributedDataParallelOptions options_;
  CommHook comm_hook_;
  std::function<double()> announce_;
  double mean_factor_ = 1;
  std::vector<Bucket> buckets_;
  std::vector<size_t> arrivals_;     // numbers of parameters
  std::vector<bool> first_unused_;   // of a static graph: in the first forward pass of this process,
  std::vector<bool> used_anywhere_;  // and those that any process has used
  size_t next_bucket_ = 0;           // to launch
  bool synchronizes_ = true, expects_gradients_ = false, has_pending_graph_ = false, has_rebuilt_ = false;
};

}  // namespace rush::nn::parallel
