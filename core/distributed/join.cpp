#include "core/distributed/join.h"

#include <algorithm>
#include <exception>

#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace rush::distributed {

Attendance Joinable::announce(int action) {
  if (join_) return join_->announce(*this, action);
  return {.action = action, .source = join_group()->ranks()[0]};
}

Join::Join(const std::vector<Joinable*>& joinables, const JoinOptions& options)
    : options_(options),
      group_(joinables.empty() ? nullptr : joinables[0]->join_group()),
      exceptions_(std::uncaught_exceptions()) {
  RUSH_CHECK_VALUE(!joinables.empty(), "Join: there is nothing to join");
  for (Joinable* joinable : joinables) {
    RUSH_CHECK_VALUE(joinable->join_group() == group_, "Join: joinables are of different process groups");
    RUSH_CHECK(!joinable->join_, "Join: a joinable is under a Join already");
    joinable->join_ = this;
    joinables_.emplace_back(joinable);
  }
}

Join::~Join() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) shadow_others();
}

// Every process has one number of the roll. That of an action counts from 1 on, over all joinables.
Attendance Join::call_roll(int action) {
  const int size = group_->size();
  const Tensor roll = zeros({size}, TensorOptions(kInt32).device(kCPU));
  int32_t* numbers = roll.data_ptr<int32_t>();
  numbers[group_->rank()] = action;
  all_reduce(roll, ReduceOp::SUM, group_);
  const int absent = static_cast<int>(std::count(numbers, numbers + size, 0));
  if (absent == size) return {};
  RUSH_CHECK_DISTRIBUTED(absent == 0 || !options_.throw_on_early_termination, "Join: ", absent, " of ", size,
                         " processes have no more batches, and throw_on_early_termination is set");
  const int32_t* first = std::find_if(numbers, numbers + size, [](int32_t number) { return number != 0; });
  last_source_ = group_->ranks()[static_cast<size_t>(first - numbers)];
  const bool divides_by_all = options_.divide_by_initial_world_size;
  return {*first, last_source_, divides_by_all ? 1.0 : static_cast<double>(size) / (size - absent)};
}

Attendance Join::announce(const Joinable& joinable, int action) {
  const auto is_this = [&](const auto& each) { return each.get() == &joinable; };
  const auto index = std::find_if(joinables_.begin(), joinables_.end(), is_this) - joinables_.begin();
  Attendance present = call_roll(1 + static_cast<int>(index) + action * static_cast<int>(joinables_.size()));
  present.action = action;
  return present;
}

void Join::shadow_others() {
  const int count = static_cast<int>(joinables_.size());
  for (Attendance others = call_roll(0); others.action != 0; others = call_roll(0)) {
    const int number = others.action - 1;
    others.action = number / count;
    joinables_[static_cast<size_t>(number % count)]->shadow(others);
  }
  if (last_source_ < 0) return;  // no process had a batch
  for (const auto& joinable : joinables_) joinable->end_join(last_source_);
}

}  // namespace rush::distributed
