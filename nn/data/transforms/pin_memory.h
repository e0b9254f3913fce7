// PinMemory: batches in memory that a GPU copies from by itself, see Note [Prefetching to a GPU].
#pragma once
#include "core/device/backend.h"
#include "core/ops/factory/pinned.h"
#include "nn/data/device_copies.h"
#include "nn/data/example.h"
#include "nn/data/transforms/base.h"

namespace rush::data::transforms {

/// Copies the tensors of a batch to pinned memory. Where there is no GPU it leaves them as they are.
template <class Batch = Example<>>
struct PinMemory : public BatchTransform<Batch, Batch> {
  Batch apply_batch(Batch batch) override {
    if (pinning_backend()) {
      detail::for_each_tensor(batch, [](Tensor& tensor) {
        if (tensor.is_cpu()) tensor = pin_memory(tensor);
      });
    }
    return batch;
  }
};

}  // namespace rush::data::transforms
