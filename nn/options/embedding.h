#pragma once
#include <optional>

#include "core/tensor.h"
#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

/// norm_type: the p of max_norm's norm. scale_grad_by_freq: a row's gradient is divided by how often it was looked up.
/// sparse: the gradient is sparse. _weight: the table to start from.
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

/// As EmbeddingOptions; freeze: the table is not trained.
struct EmbeddingFromPretrainedOptions {
  RUSH_ARG(bool, freeze) = true;
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(bool, sparse) = false;
};

using embedding_bag_mode_t = std::variant<enumtype::kSum, enumtype::kMean, enumtype::kMax>;

/// As EmbeddingOptions; mode: how the rows of a bag become one.
struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RUSH_ARG(int64_t, num_embeddings);
  RUSH_ARG(int64_t, embedding_dim);
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(embedding_bag_mode_t, mode) = kMean;
  RUSH_ARG(bool, sparse) = false;
  RUSH_ARG(Tensor, _weight);
  // Whether the last offset is the number of indices, and begins no bag.
  RUSH_ARG(bool, include_last_offset) = false;
  // This row counts for nothing.
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

/// As EmbeddingBagOptions; freeze: the table is not trained.
struct EmbeddingBagFromPretrainedOptions {
  RUSH_ARG(bool, freeze) = true;
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(embedding_bag_mode_t, mode) = kMean;
  RUSH_ARG(bool, sparse) = false;
  RUSH_ARG(bool, include_last_offset) = false;
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

namespace functional {

/// As EmbeddingBagOptions, without the table.
struct EmbeddingBagFuncOptions {
  // Where each bag begins; only for indices of one dimension.
  RUSH_ARG(Tensor, offsets);
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(embedding_bag_mode_t, mode) = kMean;
  RUSH_ARG(bool, sparse) = false;
  // A factor for each index; only for sums.
  RUSH_ARG(Tensor, per_sample_weights);
  RUSH_ARG(bool, include_last_offset) = false;
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

/// As EmbeddingOptions, without the table.
struct EmbeddingFuncOptions {
  RUSH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RUSH_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSH_ARG(double, norm_type) = 2.;
  RUSH_ARG(bool, scale_grad_by_freq) = false;
  RUSH_ARG(bool, sparse) = false;
};

}  // namespace functional
}  // namespace rush::nn
