// What a DataLoader keeps of the batches that it has asked for and not handed out.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/data/samplers.h"

namespace rush::data {

/// A batch that a worker is to load.
template <class Request>
struct BatchJob {
  uint64_t number;      // in its epoch
  uint64_t epoch_seed;  // see BatchScope
  Request request;
};

namespace detail {

/// Stands in for a sampler where the dataset itself decides what comes next: asks for batches without end.
template <class BatchRequest>
class EndlessSampler final : public samplers::Sampler<BatchRequest> {
 public:
  void reset(std::optional<size_t> = std::nullopt) override {}
  std::optional<BatchRequest> next(size_t batch_size) override { return BatchRequest(batch_size); }
};

template <class Request>
size_t request_size(const Request& request) {
  if constexpr (std::integral<Request>) {
    return request;
  } else {
    return request.size();
  }
}

/// One pass over a request. Indices are read only if they are below `dataset_size`, where that is known.
void visit_request(StateFields& fields, std::vector<size_t>& indices, std::optional<size_t> dataset_size);
void visit_request(StateFields& fields, samplers::BatchSize& size, std::optional<size_t> dataset_size);
template <class Request>
void visit_request(StateFields&, Request&, std::optional<size_t>) {
  RUSH_THROW(NotImplementedError,
             "DataLoader: it can be saved only with a sampler that asks for indices or for a number of examples");
}

}  // namespace detail

}  // namespace rush::data
