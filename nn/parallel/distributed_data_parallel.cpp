#include "nn/parallel/distributed_data_parallel.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "nn/parallel/same_everywhere.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;

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

constexpr double kMostMib = 1 << 20;  // of a bucket

// The means of gradients over processes, computed while the backward pass goes on. Every process of the group has one
// for the parameters of the same module. c10d::Reducer.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  // Throws DistributedError on every process where parameters differ between processes in number, shape or dtype.
  Reducer(const Module& module, distributed::Group group, const DistributedDataParallelOptions& options)
      : group_(std::move(group)), options_(options) {
    RUSH_CHECK_VALUE(options.bucket_cap_mb() > 0 && options.bucket_cap_mb() <= kMostMib,
                     "DistributedDataParallel: bucket_cap_mb is ", options.bucket_cap_mb(),
                     ", expected more than 0 and at most ", kMostMib);
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const auto& item : module.named_parameters()) {
      if (!item.value().requires_grad()) continue;
      names.push_back(item.key());
      tensors.push_back(item.value());
      parameters_.push_back(
          {.name = item.key(), .tensor = item.value(), .accumulator = grad_accumulator(item.value())});
    }
    check_same_everywhere("DistributedDataParallel", names, tensors, group_);
    std::vector<size_t> reverse(parameters_.size());
    std::iota(reverse.rbegin(), reverse.rend(), size_t{0});
    make_buckets(reverse);
  }

  // Watches the accumulators from now on.
  void watch() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].accumulator->post_hooks().push_back(std::make_unique<ArrivalHook>(weak_from_this(), i));
    }
  }

  // ---- the forward pass

  // Throws Error where the last backward pass has not come to all parameters.
  void begin_forward() {
    RUSH_CHECK(
        !expects_gradients_ || arrivals_.empty(),
        "DistributedDataParallel: the last backward pass did not come to all parameters that the output depended "
        "on: it ended by an exception, or an output is not used in the loss, as every one has to be");
    for (Parameter& parameter : parameters_)
      parameter.is_held = has_pending_graph_ && parameter.accumulator->use_count() > 1;
  }

  // `outputs` are what the backward pass begins at. Throws Error where they do not depend on a parameter, unless the
  // options allow for that, and where a static graph has changed.
  void end_forward(TensorList outputs) {
    const bool is_recorded = std::ranges::any_of(outputs, &Tensor::requires_grad);
    if (!is_recorded || parameters_.empty()) return;
    expects_gradients_ = false;
    has_pending_graph_ = true;
    if (!synchronizes) return;
    schedule(outputs);
    check_used();
    check_static();
    begin_backward();
  }

  // ---- the backward pass

  // Calls the collectives of the other processes' backward pass; this one's gradients count as zeros, and each `grad`
  // becomes the mean.
  void shadow_backward(double mean_factor) {
    if (parameters_.empty()) return;
    mean_factor_ = mean_factor;
    next_bucket_ = 0;
    arrivals_.clear();
    for (Bucket& bucket : buckets_) {
      bucket.flat.zero_();
      bucket.missing = 0;
    }
    for (Parameter& parameter : parameters_) {
      parameter.is_unused = true;
      parameter.tensor.mutable_grad() = may_leave_out() ? Tensor() : view_of(parameter);
    }
    launch_full_buckets();
    finish();
  }

  size_t num_buckets() const { return buckets_.size(); }

  CommHook comm_hook = allreduce_hook;  // how buckets travel; the same on every process
  bool synchronizes = true;             // else gradients are only added up on this process
  // Called before the first collective of a backward pass; returns by what the means over all processes are multiplied.
  std::function<double()> announce;

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
  // Runs on the accumulator, after it. The graph may outlive the reducer.
  class ArrivalHook final : public NodeHook {
   public:
    ArrivalHook(std::weak_ptr<Reducer> reducer, size_t number) : reducer_(std::move(reducer)), number_(number) {}
    void operator()(Tensors&) override {
      if (const auto reducer = reducer_.lock()) reducer->arrive(number_);
    }

   private:
    const std::weak_ptr<Reducer> reducer_;
    const size_t number_;
  };

  bool may_leave_out() const { return options_.find_unused_parameters() || options_.static_graph(); }  // parameters
  Tensor& view_of(const Parameter& parameter) { return buckets_[parameter.bucket].views[parameter.place]; }

  // ---- buckets

  void make_buckets(const std::vector<size_t>& order) {
    buckets_.clear();
    std::vector<size_t> waiting;
    double mib = 0;
    for (const size_t number : order) {
      const Tensor& tensor = parameters_[number].tensor;
      const Tensor* before = waiting.empty() ? nullptr : &parameters_[waiting.back()].tensor;
      const double most = buckets_.empty() ? std::min(options_.bucket_cap_mb(), 1.0) : options_.bucket_cap_mb();
      const bool is_alike =
          !before || (before->scalar_type() == tensor.scalar_type() && before->device() == tensor.device());
      if (!waiting.empty() && (mib >= most || !is_alike)) {
        add_bucket(std::exchange(waiting, {}));
        mib = 0;
      }
      waiting.push_back(number);
      mib += static_cast<double>(tensor.nbytes()) / (1 << 20);
    }
    if (!waiting.empty()) add_bucket(std::move(waiting));
  }

  // A gradient that there is moves into the bucket.
  void add_bucket(std::vector<size_t> numbers) {
    const NoGradGuard no_grad;
    Bucket bucket;
    int64_t numel = 0;
    for (const size_t number : numbers) numel += parameters_[number].tensor.numel();
    const int64_t size = group_->size(), padded = (numel + size - 1) / size * size;
    bucket.flat = zeros({padded}, parameters_[numbers[0]].tensor.options().requires_grad(false));
    int64_t start = 0;
    for (const size_t number : numbers) {
      Parameter& parameter = parameters_[number];
      parameter.bucket = buckets_.size();
      parameter.place = bucket.views.size();
      bucket.views.push_back(bucket.flat.narrow(0, start, parameter.tensor.numel()).view(parameter.tensor.sizes()));
      start += parameter.tensor.numel();
    }
    bucket.parameters = std::move(numbers);
    buckets_.push_back(std::move(bucket));
    for (const size_t number : buckets_.back().parameters) {
      if (parameters_[number].tensor.grad().defined()) move_to_bucket(parameters_[number]);
    }
  }

  void move_to_bucket(Parameter& parameter) {
    const NoGradGuard no_grad;
    Tensor& grad = parameter.tensor.mutable_grad();
    Tensor& view = view_of(parameter);
    RUSH_CHECK_NOT_IMPLEMENTED(grad.layout() == kStrided, "DistributedDataParallel: the gradient of '", parameter.name,
                               "' is sparse, and has no place in a bucket");
    if (grad.data_ptr() == view.data_ptr() && grad.strides() == view.strides()) return;
    view.copy_(grad.detach());
    grad = view;
  }

  // ---- what the forward pass is followed by

  // The least number of the nodes that lead to each accumulator; 0 where there is none.
  std::vector<uint64_t> least_consumers(TensorList outputs) const {
    std::unordered_map<const Node*, size_t> numbers;
    for (size_t i = 0; i < parameters_.size(); ++i) numbers[parameters_[i].accumulator.get()] = i;
    std::vector<uint64_t> least(parameters_.size());
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> nodes;
    const auto visit = [&](const Edge& edge, uint64_t consumer) {
      if (!edge.valid()) return;
      if (const auto found = numbers.find(edge.node.get()); found != numbers.end()) {
        uint64_t& number = least[found->second];
        number = number == 0 ? consumer : std::min(number, consumer);
      } else if (seen.insert(edge.node.get()).second) {
        nodes.push_back(edge.node.get());
      }
    };
    for (const Tensor& output : outputs) visit(gradient_edge(output), std::numeric_limits<uint64_t>::max());
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const Edge& edge : nodes[i]->next_edges()) visit(edge, nodes[i]->sequence_nr());
    }
    return least;
  }

  // See Note [Accumulators in time].
  void schedule(TensorList outputs) {
    const std::vector<uint64_t> least = least_consumers(outputs);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      Parameter& parameter = parameters_[i];
      parameter.is_unused = least[i] == 0;
      if (parameter.is_unused || (parameter.is_held && parameter.accumulator->sequence_nr() < least[i])) continue;
      parameter.accumulator->run_after(least[i]);
    }
  }

  void check_used() const {
    if (may_leave_out()) return;
    for (const Parameter& parameter : parameters_) {
      RUSH_CHECK(!parameter.is_unused, "DistributedDataParallel: the output does not depend on the parameter '",
                 parameter.name, "', so its gradient would never come; set find_unused_parameters, or freeze it");
    }
  }

  void check_static() {
    if (!options_.static_graph()) return;
    std::vector<bool> unused;
    for (const Parameter& parameter : parameters_) unused.push_back(parameter.is_unused);
    if (first_unused_.empty()) first_unused_ = unused;
    for (size_t i = 0; i < unused.size(); ++i) {
      RUSH_CHECK(unused[i] == first_unused_[i], "DistributedDataParallel: the output ",
                 unused[i] ? "no longer depends" : "now depends", " on the parameter '", parameters_[i].name,
                 "', but the graph is said to be static; set find_unused_parameters in place of static_graph");
    }
  }

  void begin_backward() {
    for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
    next_bucket_ = 0;
    arrivals_.clear();
    expects_gradients_ = true;
    for (Parameter& parameter : parameters_) {
      parameter.has_arrived = parameter.is_unused;
      if (!parameter.is_unused) continue;
      if (parameter.tensor.grad().defined()) {
        move_to_bucket(parameter);
      } else {
        view_of(parameter).zero_();
      }
      --buckets_[parameter.bucket].missing;
    }
  }

  // ---- what the backward pass does

  void arrive(size_t number) {
    has_pending_graph_ = false;
    if (!expects_gradients_ || !synchronizes) return;
    Parameter& parameter = parameters_[number];
    RUSH_CHECK(
        !parameter.has_arrived, "DistributedDataParallel: the gradient of the parameter '", parameter.name,
        "' came twice after one forward pass; use it in the module's forward pass alone, and call backward once");
    parameter.has_arrived = true;
    arrivals_.push_back(number);
    move_to_bucket(parameter);
    --buckets_[parameter.bucket].missing;
    if (next_bucket_ == 0 && buckets_[0].missing == 0) announce_backward();
    launch_full_buckets();
    if (next_bucket_ == buckets_.size()) finish();
  }

  // Where a Join ends early it throws. Nothing has been sent by then, so the next forward pass may begin.
  void announce_backward() {
    expects_gradients_ = false;
    if (announce) mean_factor_ = announce();
    expects_gradients_ = true;
  }

  void launch_full_buckets() {
    for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0; ++next_bucket_) {
      Bucket& bucket = buckets_[next_bucket_];
      bucket.work = comm_hook({bucket.flat, bucket.views, next_bucket_, next_bucket_ + 1 == buckets_.size()}, group_);
    }
  }

  void finish() {
    const NoGradGuard no_grad;
    expects_gradients_ = false;
    for (Bucket& bucket : buckets_) {
      std::exchange(bucket.work, nullptr)->wait();
      if (mean_factor_ != 1) bucket.flat.mul_(mean_factor_);
    }
    if (may_leave_out()) {
      if (!has_rebuilt_) used_anywhere_ = used_anywhere();
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (used_anywhere_[i]) parameters_[i].tensor.mutable_grad() = view_of(parameters_[i]);
      }
    }
    if (!options_.find_unused_parameters() && !std::exchange(has_rebuilt_, true)) make_buckets_in_order_of_arrival();
  }

  // Which parameters any process has used.
  std::vector<bool> used_anywhere() const {
    Tensor counts = zeros({static_cast<int64_t>(parameters_.size())}, TensorOptions(kInt32).device(kCPU));
    int32_t* each = counts.data_ptr<int32_t>();
    for (const Parameter& parameter : parameters_) *each++ = !parameter.is_unused;
    distributed::all_reduce(counts, ReduceOp::SUM, group_);
    const int32_t* sums = counts.data_ptr<int32_t>();
    return std::vector<bool>(sums, sums + parameters_.size());
  }

  // Those that have not come are last.
  void make_buckets_in_order_of_arrival() {
    for (size_t i = parameters_.size(); i-- > 0;) {
      if (parameters_[i].is_unused) arrivals_.push_back(i);
    }
    Tensor order = empty({static_cast<int64_t>(parameters_.size())}, TensorOptions(kInt64).device(kCPU));
    std::copy(arrivals_.begin(), arrivals_.end(), order.data_ptr<int64_t>());
    distributed::broadcast(order, group_->ranks()[0], group_);
    const int64_t* numbers = order.data_ptr<int64_t>();
    make_buckets({numbers, numbers + order.numel()});
  }

  std::vector<Parameter> parameters_;
  const distributed::Group group_;
  const DistributedDataParallelOptions options_;
  double mean_factor_ = 1;
  std::vector<Bucket> buckets_;
  std::vector<size_t> arrivals_;     // numbers of parameters
  std::vector<bool> first_unused_;   // of a static graph: in the first forward pass of this process,
  std::vector<bool> used_anywhere_;  // and those that any process has used
  size_t next_bucket_ = 0;           // to launch
  bool expects_gradients_ = false, has_pending_graph_ = false, has_rebuilt_ = false;
};

namespace detail {

// All tensors become those of process `source`.
static void take_over(const std::vector<Tensor>& tensors, int source, const distributed::Group& group) {
  std::vector<distributed::WorkPtr> works;
  for (const Tensor& tensor : tensors) {
    works.push_back(distributed::broadcast(tensor, source, group, /*async_op=*/true));
  }
  for (const distributed::WorkPtr& work : works) work->wait();
}

DistributedModule::DistributedModule(const Module& module, const DistributedDataParallelOptions& options)
    : Module("DistributedDataParallel"),
      group_(options.process_group() ? options.process_group() : distributed::world()),
      broadcasts_buffers_(options.broadcast_buffers()),
      reducer_(std::make_shared<Reducer>(module, group_, options)) {
  reducer_->watch();
  const int first = group_->ranks()[0];
  take_over(module.parameters(), first, group_);
  take_over(module.buffers(), first, group_);
  reducer_->announce = [this] { return announce(kReduceGradients).mean_factor; };
}

void DistributedModule::begin_forward(const Module& module) {
  if (broadcasts_buffers_ && module.is_training() && GradMode::is_enabled() && reducer_->synchronizes) {
    const std::vector<Tensor> buffers = module.buffers();
    if (!buffers.empty()) take_over(buffers, announce(kTakeBuffers).source, group_);
  }
  reducer_->begin_forward();
}

void DistributedModule::shadow(const distributed::Attendance& others) {
  if (others.action == kTakeBuffers) return take_over(buffers(), others.source, group_);
  reducer_->shadow_backward(others.mean_factor);
}

void DistributedModule::end_join(int source) {
  take_over(parameters(), source, group_);
  take_over(buffers(), source, group_);
}

DistributedModule::NoSync::NoSync(std::shared_ptr<Reducer> reducer)
    : reducer_(std::move(reducer)), before_(std::exchange(reducer_->synchronizes, false)) {}

DistributedModule::NoSync::~NoSync() { reducer_->synchronizes = before_; }

void DistributedModule::register_comm_hook(CommHook hook) { reducer_->comm_hook = std::move(hook); }

size_t DistributedModule::num_buckets() const { return reducer_->num_buckets(); }

void DistributedModule::end_forward(const std::vector<Tensor>& outputs) { reducer_->end_forward(outputs); }

}  // namespace detail
}  // namespace rush::nn::parallel
