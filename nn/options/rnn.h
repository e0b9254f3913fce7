#pragma once
#include <cstdint>

#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

// What the recurrent networks' options have in common.
#define RUSH_RNN_SIZES_AND_FLAGS                                                                                   \
  RUSH_ARG(int64_t, input_size);                                                                                   \
  RUSH_ARG(int64_t, hidden_size);                                                                                  \
  RUSH_ARG(int64_t, num_layers) = 1;                                                                               \
  RUSH_ARG(bool, bias) = true;                                                                                     \
  /* Inputs and outputs are (batch, time, feature) instead of (time, batch, feature); states are (layer, batch, */ \
  /* feature) either way. */                                                                                       \
  RUSH_ARG(bool, batch_first) = false;                                                                             \
  /* Between layers, while training. */                                                                            \
  RUSH_ARG(double, dropout) = 0.0;                                                                                 \
  RUSH_ARG(bool, bidirectional) = false
#define RUSH_RNN_OPTIONS(Name)                                                                          \
  Name(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {} \
  RUSH_RNN_SIZES_AND_FLAGS

#define RUSH_RNN_CELL_OPTIONS(Name)                                                                     \
  Name(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {} \
  RUSH_ARG(int64_t, input_size);                                                                        \
  RUSH_ARG(int64_t, hidden_size);                                                                       \
  RUSH_ARG(bool, bias) = true

/// What recurrent networks share, and the nonlinearity of their state.
struct RNNOptions {
  using nonlinearity_t = std::variant<enumtype::kTanh, enumtype::kReLU>;
  RUSH_RNN_OPTIONS(RNNOptions);
  RUSH_ARG(nonlinearity_t, nonlinearity) = kTanh;
};

/// What recurrent networks share, and a projection of h.
struct LSTMOptions {
  RUSH_RNN_OPTIONS(LSTMOptions);
  // When positive, a linear map takes h to this size before it is put out and fed back.
  RUSH_ARG(int64_t, proj_size) = 0;
};

/// What recurrent networks share.
struct GRUOptions {
  RUSH_RNN_OPTIONS(GRUOptions);
};

/// What recurrent cells share, and the nonlinearity of their state.
struct RNNCellOptions {
  using nonlinearity_t = RNNOptions::nonlinearity_t;
  RUSH_RNN_CELL_OPTIONS(RNNCellOptions);
  RUSH_ARG(nonlinearity_t, nonlinearity) = kTanh;
};

/// What recurrent cells share: sizes, and whether biases are added.
struct LSTMCellOptions {
  RUSH_RNN_CELL_OPTIONS(LSTMCellOptions);
};

/// What recurrent cells share: sizes, and whether biases are added.
struct GRUCellOptions {
  RUSH_RNN_CELL_OPTIONS(GRUCellOptions);
};

namespace detail {

/// What a recurrent network of any kind was made with, `options_base` of the module: `mode` says which kind it is.
struct RNNOptionsBase {
  using rnn_options_base_mode_t =
      std::variant<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, int64_t input_size, int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  RUSH_ARG(rnn_options_base_mode_t, mode);
  RUSH_RNN_SIZES_AND_FLAGS;
  RUSH_ARG(int64_t, proj_size) = 0;
};

/// The same for one step; `num_chunks` counts the gates.
struct RNNCellOptionsBase {
  RNNCellOptionsBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t num_chunks)
      : input_size_(input_size), hidden_size_(hidden_size), bias_(bias), num_chunks_(num_chunks) {}
  RUSH_ARG(int64_t, input_size);
  RUSH_ARG(int64_t, hidden_size);
  RUSH_ARG(bool, bias);
  RUSH_ARG(int64_t, num_chunks);
};

}  // namespace detail

#undef RUSH_RNN_SIZES_AND_FLAGS
#undef RUSH_RNN_OPTIONS
#undef RUSH_RNN_CELL_OPTIONS

}  // namespace rush::nn
