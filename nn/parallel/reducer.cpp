#include "nn/parallel/reducer.h"

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

constexpr double kMostMib = 1 << 20;  // of a bucket

// Runs on the accumulator, after it. The graph may outlive the reducer.
class Reducer::ArrivalHook final : public NodeHook {
 public:
  ArrivalHook(std::weak_ptr<Reducer> reducer, size_t number) : reducer_(std::move(reducer)), number_(number) {}
  void operator()(Tensors&) override {
    if (const auto reducer = reducer_.lock()) reducer->arrive(number_);
  }

 private:
  const std::weak_ptr<Reducer> reducer_;
  const size_t number_;
};

Reducer::Reducer(const Module& module, distributed::Group group, const DistributedDataParallelOptions& options)
    : group_(std::move(group)), options_(options), comm_hook_(allreduce_hook) {
  RUSH_CHECK_VALUE(options.bucket_cap_mb() > 0 && options.bucket_cap_mb() <= kMostMib,
                   "DistributedDataParallel: bucket_cap_mb is ", options.bucket_cap_mb(),
                   ", expected more than 0 and at most ", kMostMib);
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    names.push_back(item.key());
    tensors.push_back(item.value());
    Parameter& parameter = parameters_.emplace_back();
    parameter.name = item.key();
    parameter.tensor = item.value();
    parameter.accumulator = grad_accumulator(item.value());
  }
  check_same_everywhere("DistributedDataParallel", names, tensors, group_);
  std::vector<size_t> reverse(parameters_.size());
  std::iota(reverse.rbegin(), reverse.rend(), size_t{0});
  make_buckets(reverse);
}

void Reducer::watch() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].accumulator->post_hooks().push_back(std::make_unique<ArrivalHook>(weak_from_this(), i));
  }
}

// ---- buckets

void Reducer::make_buckets(const std::vector<size_t>& order) {
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
void Reducer::add_bucket(std::vector<size_t> numbers) {
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

void Reducer::move_to_bucket(Parameter& parameter) {
  const NoGradGuard no_grad;
  Tensor& grad = parameter.tensor.mutable_grad();
  Tensor& view = view_of(parameter);
  RUSH_CHECK_NOT_IMPLEMENTED(grad.layout() == kStrided, "DistributedDataParallel: the gradient of '", parameter.name,
                             "' is sparse, and has no place in a bucket");
  if (grad.data_ptr() == view.data_ptr() && grad.strides() == view.strides()) return;
  view.copy_(grad.detach());
  grad = view;
}

// ---- the forward pass

void Reducer::begin_forward() {
  RUSH_CHECK(!expects_gradients_ || arrivals_.empty(),
             "DistributedDataParallel: the last backward pass did not come to all "
             "parameters that the output depended on; every output has to be used in the loss");
  for (Parameter& parameter : parameters_)
    parameter.is_held = has_pending_graph_ && parameter.accumulator->use_count() > 1;
}

void Reducer::end_forward(TensorList outputs) {
  const bool is_recorded =
      std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.requires_grad(); });
  if (!is_recorded || parameters_.empty()) return;
  expects_gradients_ = false;
  has_pending_graph_ = true;
  if (!synchronizes_) return;
  schedule(outputs);
  check_used();
  check_static();
  begin_backward();
}

std::vector<uint64_t> Reducer::least_consumers(TensorList outputs) const {
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
void Reducer::schedule(TensorList outputs) {
  const std::vector<uint64_t> least = least_consumers(outputs);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.is_unused = least[i] == 0;
    if (parameter.is_unused || (parameter.is_held && parameter.accumulator->sequence_nr() < least[i])) continue;
    parameter.accumulator->run_after(least[i]);
  }
}

void Reducer::check_used() const {
  if (may_leave_out()) return;
  for (const Parameter& parameter : parameters_) {
    RUSH_CHECK(!parameter.is_unused, "DistributedDataParallel: the output does not depend on the parameter '",
               parameter.name, "', so its gradient would never come; set find_unused_parameters, or freeze it");
  }
}

void Reducer::check_static() {
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

void Reducer::begin_backward() {
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

// ---- the backward pass

void Reducer::arrive(size_t number) {
  has_pending_graph_ = false;
  if (!expects_gradients_ || !synchronizes_) return;
  Parameter& parameter = parameters_[number];
  RUSH_CHECK(!parameter.has_arrived, "DistributedDataParallel: the gradient of the parameter '", parameter.name,
             "' came twice after one forward pass; use it in the module's forward pass alone, and call backward once");
  parameter.has_arrived = true;
  arrivals_.push_back(number);
  move_to_bucket(parameter);
  --buckets_[parameter.bucket].missing;
  if (next_bucket_ == 0 && buckets_[0].missing == 0 && announce_) mean_factor_ = announce_();
  launch_full_buckets();
  if (next_bucket_ == buckets_.size()) finish();
}

void Reducer::launch_full_buckets() {
  for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0; ++next_bucket_) {
    Bucket& bucket = buckets_[next_bucket_];
    bucket.work = comm_hook_({bucket.flat, bucket.views, next_bucket_, next_bucket_ + 1 == buckets_.size()}, group_);
  }
}

void Reducer::shadow_backward(double mean_factor) {
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

void Reducer::finish() {
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

std::vector<bool> Reducer::used_anywhere() const {
  Tensor counts = zeros({static_cast<int64_t>(parameters_.size())}, TensorOptions(kInt32).device(kCPU));
  int32_t* each = counts.data_ptr<int32_t>();
  for (const Parameter& parameter : parameters_) *each++ = !parameter.is_unused;
  distributed::all_reduce(counts, ReduceOp::SUM, group_);
  const int32_t* sums = counts.data_ptr<int32_t>();
  return std::vector<bool>(sums, sums + parameters_.size());
}

// Those that have not come are last.
void Reducer::make_buckets_in_order_of_arrival() {
  for (size_t i = parameters_.size(); i-- > 0;) {
    if (parameters_[i].is_unused) arrivals_.push_back(i);
  }
  Tensor order = empty({static_cast<int64_t>(parameters_.size())}, TensorOptions(kInt64).device(kCPU));
  std::copy(arrivals_.begin(), arrivals_.end(), order.data_ptr<int64_t>());
  distributed::broadcast(order, group_->ranks()[0], group_);
  const int64_t* numbers = order.data_ptr<int64_t>();
  make_buckets({numbers, numbers + order.numel()});
}

}  // namespace rush::nn::parallel
