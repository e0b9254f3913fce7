#pragma once
#include <optional>

#include "core/tensor.h"
#include "nn/arg.h"

namespace rush::nn {

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RUSH_ARG(int64_t, num_embeddings);
  RUSH_ARG(int64_t, embedding_dim);
  // This row starts at zero and gets no gradient; counts from the end when negative.
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  // Rows with a larger norm are scaled down to it, in place, when they are looked up.
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(bool, sparse) = false;
  RUSH_ARG(Tensor, _weight);
};

struct EmbeddingFromPretrainedOptions {
  RUSH_ARG(bool, freeze) = true;
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(bool, sparse) = false;
};

namespace functional {

struct EmbeddingFuncOptions {
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(bool, sparse) = false;
};

}  // namespace functional
}  // namespace rush::nn
