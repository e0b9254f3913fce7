// data::detail::sequencers: the order in which results that have a `sequence_number` are handed on.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace rush::data::detail::sequencers {

template <class Result>
struct Sequencer {
  using ResultProducer = std::function<std::optional<Result>()>;
  virtual ~Sequencer() = default;
  virtual std::optional<Result> next(ResultProducer next_result) = 0;
};

/// As they arrive.
template <class Result>
struct NoSequencer final : Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  std::optional<Result> next(ResultProducer next_result) override { return next_result(); }
};

/// By their numbers: those that are early wait in a buffer, which has room for `max_jobs`.
template <class Result>
struct OrderedSequencer : Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  explicit OrderedSequencer(size_t max_jobs) : buffer_(max_jobs) {}
  std::optional<Result> next(ResultProducer next_result) override {
    if (auto& early = buffer(next_sequence_number_)) {
      auto result = *std::move(early);
      early.reset();
      ++next_sequence_number_;
      return result;
    }
    while (auto result = next_result()) {
      if (result->sequence_number == next_sequence_number_) {
        ++next_sequence_number_;
        return result;
      }
      buffer(result->sequence_number) = std::move(result);
    }
    return std::nullopt;
  }
  std::optional<Result>& buffer(size_t index) { return buffer_.at(index % buffer_.size()); }

  size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;
};

}  // namespace rush::data::detail::sequencers
