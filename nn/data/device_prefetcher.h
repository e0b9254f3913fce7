// DevicePrefetcher: the batches of a loader, on a GPU, each copied there while the GPU works on the one before.
#pragma once
#include <deque>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "core/error/error.h"
#include "nn/data/device_copies.h"
#include "nn/state/state_dict.h"

namespace rush::data {

// Note [Prefetching to a GPU]
// A copy from pageable memory makes the host wait, and one on the stream that the net runs on makes the net wait. So
// batches are copied from pinned memory, on a stream of copies, before they are wanted:
//
//   auto loader = data::make_data_loader(dataset.map(Stack<>()).map(PinMemory<>()), options.workers(2));
//   data::DevicePrefetcher batches(*loader, kCUDA);
//   for (auto& batch : batches) { ... batch.data, batch.target are on the GPU ... }
//
// The transform PinMemory lets the workers do the copy to pinned memory; without it the calling thread does. When a
// batch is handed out, the current stream waits for its copy (the host does not), and the next one's is begun. Its
// memory is not used again before the stream that was current then is done with it: call record_stream on what goes to
// further streams. On the CPU batches are handed out as the loader gives them, none ahead.
//
// The position within an epoch that the prefetcher's state dict holds is the caller's: batches that are in flight
// count as not handed out. Name the prefetcher in checkpoints, not its loader.
template <class Loader>
class DevicePrefetcher {
 public:
  using BatchType = typename Loader::BatchType;

  /// Goes through the batches of one epoch.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = BatchType;
    using pointer = BatchType*;
    using reference = BatchType&;
    using iterator_category = std::input_iterator_tag;

    /// The batch, on the device; ++ goes on to the next one.
    BatchType& operator*() const { return all_->current(); }
    BatchType* operator->() const { return &all_->current(); }
    Iterator& operator++() {
      all_->advance();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_end() == b.at_end(); }

   private:
    friend class DevicePrefetcher;
    explicit Iterator(DevicePrefetcher* all) : all_(all) {}
    bool at_end() const { return !all_ || all_->at_end_; }
    DevicePrefetcher* all_;
  };

  /// `ahead`: how many batches are in flight while the caller has one. The loader must outlive the prefetcher.
  /// Throws ValueError unless `ahead` is from 1 to Loader::kMostUnused, CudaError where there is no such device.
  DevicePrefetcher(Loader& loader, Device device, size_t ahead = 1) : loader_(loader), copies_(device), ahead_(ahead) {
    RUSH_CHECK_VALUE(ahead >= 1 && ahead <= Loader::kMostUnused, "DevicePrefetcher: ahead must be from 1 to ",
                     Loader::kMostUnused, ", got ", ahead);
  }
  DevicePrefetcher(const DevicePrefetcher&) = delete;
  DevicePrefetcher& operator=(const DevicePrefetcher&) = delete;

  /// Begins an epoch, as the loader's does.
  Iterator begin() {
    drop_all();
    place_ = loader_.begin();
    advance();
    return Iterator(this);
  }
  Iterator end() { return Iterator(nullptr); }

  /// The caller's position within the epoch. Loading one gives up what is in flight.
  StateDict state_dict() { return loader_.state_dict(on_their_way_.size()); }
  void load_state_dict(const StateDict& dict) {
    loader_.load_state_dict(dict);
    drop_all();
  }

 private:
  struct Copy {
    BatchType batch;
    Event done;
    std::exception_ptr failure;  // the loader's, instead of a batch
  };

  BatchType& current() {
    RUSH_CHECK(current_, "DevicePrefetcher: there is no batch here");
    return *current_;
  }

  void drop_all() {
    on_their_way_.clear();
    current_.reset();
    place_.reset();
    is_taken_ = false;
  }

  // What the loader throws comes when its batch would have come.
  void advance() {
    current_.reset();
    if (on_their_way_.empty()) fetch();
    at_end_ = on_their_way_.empty();
    if (at_end_) return;
    Copy next = std::move(on_their_way_.front());
    on_their_way_.pop_front();
    if (next.failure) std::rethrow_exception(next.failure);
    copies_.wait(next.done);
    detail::for_each_tensor(next.batch, [&](const Tensor& tensor) { copies_.hand_over(tensor); });
    current_ = std::move(next.batch);
    while (copies_.needed() && on_their_way_.size() < ahead_ && place_) fetch();
  }

  // Takes a batch from the loader and begins to copy it; none at the end of the epoch. The loader is asked for the
  // batch that is wanted now and for no other.
  void fetch() {
    if (!place_) return;
    try {
      if (std::exchange(is_taken_, true)) ++*place_;
      if (*place_ == loader_.end()) return place_.reset();
      BatchType batch = std::move(**place_);
      detail::for_each_tensor(batch, [&](Tensor& tensor) { copies_.begin(tensor); });
      on_their_way_.push_back({std::move(batch), copies_.mark(), nullptr});
    } catch (...) {
      on_their_way_.push_back({BatchType(), Event(kCPU), std::current_exception()});
    }
  }

  Loader& loader_;
  detail::DeviceCopies copies_;
  size_t ahead_;
  std::optional<typename Loader::Iterator> place_;  // none outside of an epoch
  bool is_taken_ = false;                           // the batch at place_
  std::deque<Copy> on_their_way_;
  std::optional<BatchType> current_;
  bool at_end_ = true;
};

}  // namespace rush::data
