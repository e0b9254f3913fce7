// The bases of transforms: of a whole batch, or of each example by itself.
#pragma once
#include <utility>
#include <vector>

namespace rush::data::transforms {

/// A function of batches, which the worker that loaded a batch applies: derive from it, and write apply_batch.
template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;

  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;  // takes the batch's place
};

/// A function of examples, applied to each of a batch: derive from it, and write apply.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;

  virtual Output apply(Input input) = 0;  // takes the example's place
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> output_batch;
    output_batch.reserve(input_batch.size());
    for (Input& input : input_batch) output_batch.push_back(apply(std::move(input)));
    return output_batch;
  }
};

}  // namespace rush::data::transforms
