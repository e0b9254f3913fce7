// Threads of this process as the processes of a group, without MPI: for ThreadSanitizer, which takes what MPI does for
// races. A rank's collectives are carried out by a thread of its own, as Note [Communication thread] has it.
#pragma once
#include <exception>
#include <functional>
#include <numeric>
#include <queue>

#include "autograd/grad_mode.h"
#include "core/distributed/process_group.h"
#include "core/ops/basic.h"
#include "core/threads/thread.h"

namespace rush::testing {

// Where the ranks' first collectives meet, then their second ones, and so on.
class Meeting {
 public:
  explicit Meeting(int size) : tensors_(static_cast<size_t>(size)) {}

  // Each rank calls it; the last one calls `exchange` with the tensors of all.
  template <class Exchange>
  void meet(int rank, const Tensor& tensor, const Exchange& exchange) {
    std::unique_lock lock(mutex_);
    tensors_[static_cast<size_t>(rank)] = tensor;
    const int64_t round = round_;
    if (++arrived_ < tensors_.size()) return changed_.wait(lock, [&] { return round_ != round; });
    const NoGradGuard no_grad;
    exchange(tensors_);
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  rush::detail::Condition changed_;
  std::vector<Tensor> tensors_;
  size_t arrived_ = 0;
  int64_t round_ = 0;
};

// What DistributedDataParallel needs of a group.
class ThreadGroup final : public distributed::ProcessGroup {
 public:
  ThreadGroup(std::shared_ptr<Meeting> meeting, std::vector<int> ranks, int rank)
      : ProcessGroup("threads", std::move(ranks), rank), meeting_(std::move(meeting)), thread_([this] { work(); }) {}
  ~ThreadGroup() override { enqueue(nullptr); }

  using Op = distributed::ReduceOp;
  using WorkPtr = distributed::WorkPtr;

  const char* backend() const override { return "threads"; }
  WorkPtr all_reduce(const Tensor& tensor, Op op) override {
    return begin(tensor, [op](const std::vector<Tensor>& all) {
      Tensor total = all[0].clone();
      for (size_t i = 1; i < all.size(); ++i) total = op == Op::MIN ? minimum(total, all[i]) : total + all[i];
      if (op == Op::AVG) total.div_(static_cast<double>(all.size()));
      for (const Tensor& each : all) each.copy_(total);
    });
  }
  WorkPtr broadcast(const Tensor& tensor, int root) override {
    return begin(tensor, [root](const std::vector<Tensor>& all) {
      for (const Tensor& each : all) each.copy_(all[static_cast<size_t>(root)]);
    });
  }
  WorkPtr all_gather(const Tensor& output, const Tensor& input) override {
    const Tensor blocks = output.view({size(), input.numel()});
    blocks.select(0, rank()).copy_(input.flatten());
    return begin(blocks, [](const std::vector<Tensor>& all) {
      for (int64_t i = 0; i < all[0].size(0); ++i) {
        for (const Tensor& each : all) each.select(0, i).copy_(all[static_cast<size_t>(i)].select(0, i));
      }
    });
  }
  WorkPtr reduce(const Tensor&, Op, int) override { return refuse(); }
  WorkPtr reduce_scatter(const Tensor&, const Tensor&, Op) override { return refuse(); }
  WorkPtr all_to_all(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef) override { return refuse(); }
  WorkPtr send(const Tensor&, int, int) override { return refuse(); }
  WorkPtr recv(const Tensor&, int, int) override { return refuse(); }
  WorkPtr barrier() override { return refuse(); }
  distributed::Group split(std::string, std::vector<int>) override {
    refuse();
    return nullptr;
  }

 private:
  static WorkPtr refuse() { RUSH_THROW(NotImplementedError, "threads all_reduce, broadcast and all_gather"); }

  template <class Exchange>
  WorkPtr begin(const Tensor& tensor, Exchange exchange) {
    auto work = std::make_shared<distributed::Work>();
    enqueue([this, tensor, exchange, work] {
      meeting_->meet(rank(), tensor, exchange);
      work->finish();
    });
    return work;
  }
  void enqueue(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push(std::move(task));
    changed_.notify_one();
  }
  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !tasks_.empty(); });
    auto task = std::move(tasks_.front());
    tasks_.pop();
    return task;
  }
  void work() {
    while (const auto task = next()) task();
  }

  const std::shared_ptr<Meeting> meeting_;
  std::mutex mutex_;
  rush::detail::Condition changed_;
  std::queue<std::function<void()>> tasks_;  // an empty one is the last
  rush::detail::Thread thread_;
};

// Calls body(group) on a thread for each rank, and throws what one of them has thrown.
inline void run_ranks(int size, const std::function<void(const distributed::Group&)>& body) {
  const auto meeting = std::make_shared<Meeting>(size);
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::exception_ptr> failures(ranks.size());
  {
    std::vector<rush::detail::Thread> threads;
    for (const int rank : ranks) {
      threads.emplace_back([&, rank] {
        try {
          body(std::make_shared<ThreadGroup>(meeting, ranks, rank));
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace rush::testing
